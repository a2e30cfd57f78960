"""Benchmarks of weir: servers, load generators, trials and pages.

`programs` finds the programs, `process` runs a command on a core and returns its cost, `servers` starts targets, and
`generators` makes the command line of each tool and reads its report. A section (`closed`, `opened`, `truth`, `memory`
and others) makes trials with them, which are saved as JSON. `served` measures servers rather than generators, with
`serving` and `footprint`, and ends with a `soak`. `delivery` compares `weir send` with an oracle (`limits`) at a
service that counts (`limited`); `harm` counts good calls that `weir gate` loses during the disturbances of `noise`.
`results` reads saved trials, `goals` compares them with goals and `page` renders them: a page can be rendered again
without another measurement.
"""
