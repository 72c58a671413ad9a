"""Runs the library `tokenizers` on a tokenizer.json: a separate program that reads and writes JSON.

A file that the library does not expect may crash its process, keep it busy forever, or fill the screen. In that case
the process that started this program simply gets no answer, and continues.
"""

import json
import sys
from importlib import import_module


def answer(asked):
    """The token ids of a `text`, or the text of each list of `ids`; or the error."""
    doing = "cannot be read"
    try:
        tokenizer = import_module("tokenizers").Tokenizer.from_file(asked["path"])
        tokenizer.no_padding()
        tokenizer.no_truncation()
        if "text" in asked:
            doing = "cannot tokenize the text"
            return {"made": tokenizer.encode(asked["text"]).ids}
        doing = "cannot put tokens together"
        return {"made": [tokenizer.decode(ids, skip_special_tokens=False) for ids in asked["ids"]]}
    except BaseException as error:  # a panic of the library is not an Exception
        return {"error": f"{doing}: {error}"[:1000]}


def main():
    asked = json.load(sys.stdin)
    sys.path[:] = asked["modules"]
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (asked["memory"], asked["memory"]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):  # not Unix, or without such a limit
        pass
    json.dump(answer(asked), sys.stdout)


if __name__ == "__main__":
    main()
