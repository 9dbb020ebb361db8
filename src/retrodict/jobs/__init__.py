"""Imputation of any number of streams, chunk by chunk: nothing is lost when it is interrupted.

| file | idea |
|---|---|
| ``folder`` | what is on disk while a job is unfinished, and what counts as done |
| ``identity`` | which input, model and options a job belongs to |
| ``spread`` | the rows of a table, put into one file for some streams each |
| ``known`` | streams that were seen, to be found again |
| ``plan`` | the chunks, and what holds for all of them |
| ``part`` | one chunk, read as the whole input would be |
| ``pooled`` | what only all streams together decide: the ensemble and the cost |
| ``work`` | sample a chunk, decode a chunk |
| ``assemble`` | the parts as one table |
| ``complete`` | the manifest that stays in a folder of parts |
| ``run`` | the stages, one after the other |
| ``workers`` | who works a stage off: this process, or the workers of a Ray cluster |
"""
