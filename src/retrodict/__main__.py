"""``python -m retrodict``: the command, where it is not installed as one."""

from retrodict.cli import main

if __name__ == "__main__":
    main()
