"""The loops behind `drain` and `work`: what one slot does (`slot`), and the threads that run slots (`threads`).

`aio.tasks` runs the same slots as asyncio tasks.
"""
