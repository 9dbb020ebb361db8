"""Algorithm 1 for neural Hawkes processes on a GPU, in Triton kernels.

    engine.py    what it takes and what it refuses; the contract
    sweep.py     the loop over rounds, replayed as CUDA graphs
    buffers.py   where everything lies on the device
    load.py      streams, weights and missing rates into the buffers
    launch.py    how kernels are launched and recorded
    draw.py      DrawSegment: every row that is short of its segment's end draws its next event (lines 27-46)
    tilt.py      what the future adds to the drive, and units in which past and future interact
    stretch.py   missing rates that change in time: how far a row may draw at once
    meet.py      particles meet at observed events: resample, go on; slots that are free take waiting streams
    begin.py     a slot begins with a stream
    read.py      the LSTM reads the events of a round in one matrix product; copies follow their parents
    backward.py  the right-to-left LSTM and a table of what it adds to each segment
    pack.py      weights as the kernels want them; what happened at the start instant
    arrange.py   streams as the kernels want them; particles read off at the end
    maths.py     random numbers and small functions

A *slot* holds one stream and its M particles (rows); a *round* is the four kernels draw, meet, read, copy. In a round
every waiting row draws one event or comes to the end of its segment. Rows and slots of a round are listed on the device
itself, so the host only looks now and then whether all is done.
"""
