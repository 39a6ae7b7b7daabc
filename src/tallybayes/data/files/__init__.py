"""Files as data sources: Parquet, Arrow IPC, CSV and JSON lines."""
