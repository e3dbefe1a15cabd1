# What the login node and the compute nodes of a twin do alike.
# shellcheck shell=bash disable=SC2154

fresh_dev() { # fresh_dev FOLDER: a /dev of our own
  mount -t tmpfs -o mode=755 dev "$1"
  local name numbers
  while read -r name numbers; do
    # shellcheck disable=SC2086
    mknod -m 666 "$1/$name" c $numbers
  done <<'DEVICES'
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
fuse 10 229
DEVICES
  mkdir "$1/net" "$1/pts" "$1/shm"
  mknod -m 666 "$1/net/tun" c 10 200
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$1/pts"
  mount -t tmpfs -o mode=1777 shm "$1/shm"
  ln -s pts/ptmx "$1/ptmx"
  ln -s /proc/self/fd "$1/fd"
  ln -s fd/0 "$1/stdin"
  ln -s fd/1 "$1/stdout"
  ln -s fd/2 "$1/stderr"
}

fresh_tmp() { # a /tmp of our own, in which what is kept of the machine stays visible
  mount -t tmpfs -o mode=1777,size=2g tmp /tmp
  local i
  for i in "${!keep[@]}"; do
    [[ ${keep[i]} == /tmp/* ]] || continue
    mkdir -p "${keep[i]}"
    mount --bind "/twin/keep/$i" "${keep[i]}"
  done
}

lay_out() { # lay_out FILE: file systems in memory and the site's folders on them
  local size inodes mode uid gid path
  while read -r size inodes mode uid gid path; do
    install -d -m "$mode" -o "$uid" -g "$gid" "$path"
    ((size == 0)) || mount -t tmpfs -o "mode=$mode,uid=$uid,gid=$gid,size=$size,nr_inodes=$inodes" site "$path"
  done <"$1"
}

stay() { # a namespace's init: collect the children that nobody else does
  while :; do
    sleep 3600 &
    wait $! || :
  done
}
