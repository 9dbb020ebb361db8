"""Events in and out: ``read`` and ``write`` dispatch, one file per format, and what the formats share.

| file | idea |
|---|---|
| ``read``, ``write`` | choose the format, import it only then |
| ``csv_file``, ``parquet_file``, ``jsonl``, ``easytpp``, ``pickles`` | one format each |
| ``tables`` | pandas, Polars and Arrow tables in and out |
| ``long_table``, ``roles``, ``time_column``, ``arrow_columns`` | one row an event: columns, times, types, grouping |
| ``records`` | one record a stream |
| ``request``, ``type_codes``, ``ragged``, ``files`` | shared: arguments, type names, grouping, bytes |
"""
