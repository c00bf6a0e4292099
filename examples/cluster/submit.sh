#!/bin/sh
# Answers for a bucket on a Ray cluster that runs already. The head's dashboard is at RAY_API_SERVER_ADDRESS.
# rules.pl and whatever it includes lie in ./job, which is sent along; nodes install nsfrc from PyPI or a wheel.
set -eu
: "${RAY_API_SERVER_ADDRESS:=http://127.0.0.1:8265}"

ray job submit --address "$RAY_API_SERVER_ADDRESS" --working-dir job \
    --runtime-env-json '{"pip": ["nsfrc[ray]"]}' -- \
    nsfrc infer --ray auto --images s3://bucket/photos --program rules.pl --out s3://bucket/rows \
    --workers 64 --quiet --resume
