"""`python -m sandlab.cli`."""

from sandlab.cli import main

if __name__ == "__main__":
    main()
