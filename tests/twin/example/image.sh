#!/bin/bash
# Make a small image from the twin's own programs: bash, Python and what job scripts call.
# usage: image.sh IMAGE.sqsh
set -euo pipefail
root=$(mktemp -d)
trap 'rm -rf -- "$root"' EXIT
mkdir -p "$root"/{usr/bin,usr/lib/x86_64-linux-gnu,usr/lib64,proc,sys,dev,tmp,etc,root,home,run,var/tmp,cluster}
for name in bin lib lib64; do ln -s "usr/$name" "$root/$name"; done
take() { # a file with the libraries that it needs
  local file library
  file=$(readlink -f "$1")
  cp "$file" "$root/usr/bin/${1##*/}"
  while read -r library; do
    mkdir -p "$root${library%/*}"
    cp -Ln "$library" "$root$library"
  done < <(ldd "$file" | grep -o '/[^ ]*')
}
for name in bash python3 basename cat chmod cksum cut date dirname env head hostname id ln mkdir mv rm \
  sed sleep stat tail touch tr; do take "/usr/bin/$name"; done
for library in ssl crypto ffi z bz2 lzma; do
  cp -L /usr/lib/x86_64-linux-gnu/lib"$library".so.* "$root/usr/lib/x86_64-linux-gnu/"
done
cp -L /usr/lib/x86_64-linux-gnu/libgcc_s.so.1 "$root/usr/lib/x86_64-linux-gnu/" # opened when a thread ends
ln -s python3 "$root/usr/bin/python"
ln -s bash "$root/usr/bin/sh"
cp -a /usr/lib/python3.?* "$root/usr/lib/"
mkdir -p "$root/usr/share" "$root/etc/ssl/certs"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" # Debian's pip reads no other
cp -a /usr/share/python-wheels "$root/usr/share/" # without them no venv in the image has a pip
touch "$root"/etc/{passwd,group,resolv.conf,hosts,localtime}
mksquashfs "$root" "$1" -quiet -no-progress -noappend -comp lz4 >/dev/null
