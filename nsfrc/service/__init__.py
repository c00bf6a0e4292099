"""A program as an HTTP service: what `nsfrc serve` runs, and a client for it (`nsfrc.service.client`).

    connections.py  what a connection may cost before there is a request
    gate.py         who may ask, the access log, and that every failure has an answer
    app.py          routes and their OpenAPI; page.py shows it at /docs
    bodies.py       bytes of a body, within limits → pictures, detections or facts
    answering.py    these → units of work, and rows as `nsfrc infer` has them
    batcher.py      waiting units, several at once
    metrics.py      counts for Prometheus
    running.py      sockets, workers and signals
"""
