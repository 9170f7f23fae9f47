"""What spark-submit starts: `penstock`, with the arguments behind this file."""

from penstock.cli import main

main()
