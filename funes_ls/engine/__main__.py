"""`python -m funes_ls.engine`: the engine of `$FUNES_HOME`, until nobody needs it."""

import logging
import os

from funes_ls.indexer.errors import FunesError
from funes_ls.indexer.home import home_dir, make_private

os.umask(0o077)  # before anything is made


def main() -> int:
    """Run the engine and return its exit code; a second one of a home ends at once."""
    from funes_ls.engine.log import frames, log_to_file, shut_standard_streams

    home = home_dir(os.environ).absolute()
    try:
        make_private(home / "run")
        log_to_file(home)
    except OSError:
        return 1
    shut_standard_streams()
    try:
        from funes_ls.engine.start import run

        return run(home)
    except FunesError as exc:
        logging.getLogger(__name__).error("cannot run: %s", exc.message)
    except BaseException as exc:
        logging.getLogger(__name__).error("internal error\n%s", frames(exc))
    return 1


if __name__ == "__main__":
    code = main()
    logging.shutdown()
    # Threads that work on what nobody waits for any more must not hold the end up.
    os._exit(code)
