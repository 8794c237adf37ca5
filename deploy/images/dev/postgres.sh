#!/bin/sh
# Starts Postgres without root, with the variables of the official image: POSTGRES_PASSWORD, POSTGRES_USER (postgres),
# POSTGRES_DB (the user's name) and PGDATA. Arguments are Postgres's own.
set -eu
: "${PGDATA:=/var/lib/postgresql/data}"
user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  : "${POSTGRES_PASSWORD:?Set POSTGRES_PASSWORD; it becomes the password of $user.}"
  mkdir -p "$PGDATA"
  chmod 700 "$PGDATA" 2>/dev/null || true # a volume's own folder may belong to somebody else
  password=$(mktemp)
  printf '%s\n' "$POSTGRES_PASSWORD" > "$password"
  initdb --pgdata="$PGDATA" --username="$user" --pwfile="$password" --auth-host=scram-sha-256 --auth-local=trust \
    --encoding=UTF8 --locale=C.UTF-8
  rm -f "$password"
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  if [ "$database" != postgres ]; then
    name=$(printf '%s' "$database" | sed 's/"/""/g')
    echo "CREATE DATABASE \"$name\"" | postgres --single -D "$PGDATA" postgres > /dev/null
  fi
fi
unset POSTGRES_PASSWORD
[ "${1:-}" != postgres ] || shift
exec postgres -D "$PGDATA" -c "listen_addresses=*" "$@"
