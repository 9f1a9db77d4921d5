"""What is public about a table: columns and their domains, read from a schema or written down."""
