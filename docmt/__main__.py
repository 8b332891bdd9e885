"""`python -m docmt`: the same as the command `docmt`."""

import sys

from docmt.cli.main import main

sys.exit(main())
