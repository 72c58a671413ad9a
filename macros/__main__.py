"""The command line: `python -m macros` in the repository, `every-parameter` where it is installed."""

import gc
import sys

OBJECTS = 200_000  # that have to be new before a collection: a command makes few that are not needed to its end


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status. What it takes is imported here, where Ctrl-C ends it without a word."""
    gc.set_threshold(OBJECTS)
    try:
        from .cli.commands import main as run

        return run(arguments)
    except KeyboardInterrupt:
        return 130
    except RuntimeError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # while a class is made, as Python before 3.12 has it
            return 130
        raise


if __name__ == "__main__":
    sys.exit(main())
