"""Parts of the documentation's site: pages of docs/ as they are, and pages that are made from the program."""
