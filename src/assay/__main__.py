"""`python -m assay`: the `assay` command, for when it is not on the PATH."""

from assay.cli.main import main

if __name__ == "__main__":
    main()
