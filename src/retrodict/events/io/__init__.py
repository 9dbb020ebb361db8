"""Events in and out: ``read`` and ``write`` dispatch, one file per format, and what the formats share.

| file | idea |
|---|---|
| ``read``, ``write`` | choose the format, import it only then |
| ``csv_file``, ``parquet_file``, ``jsonl``, ``easytpp``, ``pickles``, ``meds``, ``xes`` | one format each |
| ``xes_text``, ``xes_out``, ``record_keys``, ``own_records``, ``record_tables`` | parts of XES and of EasyTPP |
| ``known_layouts``, ``choose_events``, ``aside`` | tables known by their columns, in which some rows are no events |
| ``tables`` | pandas, Polars and Arrow tables in and out |
| ``long_table``, ``roles``, ``time_column``, ``arrow_columns`` | one row an event: columns, times, types, grouping |
| ``records`` | one record a stream |
| ``request``, ``type_codes``, ``ragged``, ``files`` | shared: arguments, type names, grouping, bytes |
"""
