"""What commands print: one sentence first, then one table, then everything else on request."""
