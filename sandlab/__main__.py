"""`python -m sandlab` is the command `sandlab`."""

from sandlab.cli import main

if __name__ == "__main__":
    main()
