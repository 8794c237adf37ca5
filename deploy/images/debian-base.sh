#!/bin/sh
# Makes a base image from Debian's packages, for people who cannot pull one:
#
#   deploy/images/debian-base.sh                      localhost/waybill-base, Debian 12 with Python 3.11
#   deploy/images/debian-base.sh NAME trixie          another name and release
#   make images BASE=localhost/waybill-base
#
# It needs root, debootstrap, and buildah or docker. MIRROR names another server than debootstrap's own; a proxy is
# taken from the environment.
set -eu
name=${1:-localhost/waybill-base}
suite=${2:-bookworm}
[ "$(id -u)" = 0 ] || { echo "debootstrap has to run as root: sudo $0 $*" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "There is no debootstrap: apt install debootstrap" >&2; exit 1; }
if docker version >/dev/null 2>&1; then builder=docker
elif command -v buildah >/dev/null; then builder=buildah
else echo "There is neither docker nor buildah: apt install buildah" >&2; exit 1; fi

folder=$(mktemp -d "${TMPDIR:-/var/tmp}/waybill-base.XXXXXX")
trap 'rm -rf "$folder" "$folder.log"' EXIT
trap 'exit 1' HUP INT TERM
chmod 755 "$folder"
debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$suite" "$folder" ${MIRROR:+"$MIRROR"} \
  > "$folder.log" 2>&1 || { tail -n 20 "$folder.log" >&2; exit 1; }

# What only apt and readers of manuals need. Licences stay.
rm -rf "$folder"/var/cache/apt/* "$folder"/var/lib/apt/lists/* "$folder"/var/cache/debconf/*-old "$folder"/var/log/*.log \
  "$folder"/var/log/apt "$folder"/usr/share/man "$folder"/usr/share/info "$folder"/usr/share/locale
find "$folder/usr/share/doc" -type f ! -name copyright -delete
: > "$folder/etc/machine-id"
rm -f "$folder/etc/resolv.conf" "$folder/etc/hostname"  # the builder's, not everybody's

if [ $builder = docker ]; then
  tar -C "$folder" --numeric-owner --one-file-system -c . | docker import --change 'CMD ["bash"]' - "$name" >/dev/null
else
  container=$(buildah from scratch)
  buildah add --quiet "$container" "$folder" / >/dev/null
  buildah config --cmd bash "$container"
  buildah commit --quiet --rm "$container" "$name" >/dev/null
fi
echo "$name: Debian $suite with $(chroot "$folder" python3 --version), $(du -sm "$folder" | cut -f1) MB"
