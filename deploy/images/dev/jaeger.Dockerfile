# Jaeger from a program of yours (`make dev-images JAEGER_BIN=...`), started as the official image of its second version is:
# `--config=...` and nothing else. The context is a folder with that program.
ARG BASE=python:3.13-slim
FROM ${BASE} AS jaeger
COPY jaeger /cmd/jaeger/jaeger-linux
USER 10001:10001
EXPOSE 4317 4318 16686
STOPSIGNAL SIGTERM
ENTRYPOINT ["/cmd/jaeger/jaeger-linux"]
LABEL org.opencontainers.image.title="waybill-dev-jaeger" \
      org.opencontainers.image.description="Jaeger, for tests of Waybill"
