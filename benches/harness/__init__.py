"""The benchmarks of weir: servers, load generators, and what is measured with them.

`programs` finds what there is to run, `process` runs one command on one core and says what it
cost, `servers` starts a target, `generators` knows how each tool is asked and how it answers.
A section (`closed`, `opened`, `truth`, `memory`, `served`) turns them into trials, which are kept as JSON.
`served` measures servers instead, with `serving` and `footprint`, and ends with a `soak`.
`delivery` holds `weir send` against an oracle (`limits`) of a service that counts (`limited`); `harm` counts the good
calls that `weir gate` costs among the disturbances of `noise`.
`results` reads the trials back, `goals` judges them and `page` writes them down; so a page can be
written again without measuring again.
"""
