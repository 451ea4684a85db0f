"""Live databases, asked through the program cdb2sql. Nothing here changes anything in them."""
