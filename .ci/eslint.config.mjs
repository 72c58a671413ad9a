// Lint rules for our own scripts; package.json says which files they cover.

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
      "@stylistic/max-len": ["error", { code: 120 }], // the formatter does not wrap comments and strings
      eqeqeq: ["error", "always", { null: "ignore" }], // == null is null or undefined
      // Leading whitespace in an `html` template is not rendered.
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
