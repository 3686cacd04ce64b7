# The image of docker-compose.yml: every dependency pinned with its hash, the embedded registries built in.
FROM python:3.11-slim
RUN apt-get update && apt-get install --yes --no-install-recommends git openssh-client && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/assay
COPY requirements.lock .
RUN pip install --no-cache-dir --require-hashes --requirement requirements.lock
COPY . .
RUN pip install --no-cache-dir --no-deps . && python examples/build.py build/examples \
    && mkdir /airflow /assay && chown 1000:1000 /airflow /assay
