// What the linter asks of our own scripts. Which files: package.json.

import js from "@eslint/js"
import stylistic from "@stylistic/eslint-plugin"
import globals from "globals"

export default [
  { ignores: ["**/vendor/", "**/*.min.js"] },
  js.configs.recommended,
  {
    languageOptions: { globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    plugins: { "@stylistic": stylistic },
    rules: {
      "@stylistic/max-len": ["error", { code: 120 }], // what the formatter leaves: comments and texts
      eqeqeq: ["error", "always", { null: "ignore" }], // == null is null or undefined
      // A template of the views (html) leaves out what its lines begin with.
      "no-restricted-syntax": [
        "error",
        {
          selector:
            ":not(TaggedTemplateExpression[tag.name=html]) > TemplateLiteral > TemplateElement[value.raw=/\\n/]",
          message:
            "Lines are sent without what they are indented by (bundle.py): write a text on one line, or join several.",
        },
      ],
      "no-sequences": "error",
      "no-unused-expressions": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": ["error", { destructuring: "all" }],
    },
  },
  { files: ["**/*.js"], languageOptions: { sourceType: "script" } },
]
