"""Run the command `docmt` as `python -m docmt`."""

import sys

from docmt.cli.main import main

sys.exit(main())
