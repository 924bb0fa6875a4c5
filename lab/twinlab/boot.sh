#!/bin/sh
# Becomes a simulated machine: runs as process 1 of new namespaces, builds the host's mounts, ends as its systemd.
# Usage: boot.sh NAME FOLDER BASE TTY
set -eu
name=$1 folder=$2 base=$3 tty=$4
root=$folder/root
exec >"$tty" 2>&1 <"$tty"

bind() { mount --bind "$1" "$2"; }
bind_file() { [ -e "$2" ] || : >"$2"; bind "$1" "$2"; }
read_only() { mount -o remount,ro,bind "$1"; }

# --- disk: what the host writes; its image goes away with the last mount of it
if [ -e "$folder/disk.img" ]; then
    mount -o loop,discard,barrier=0,noinit_itable "$folder/disk.img" "$folder/disk"
fi
mkdir -p "$folder/disk/upper" "$folder/disk/work" "$folder/disk/docker" "$folder/disk/containerd"
mount -t overlay overlay -o "lowerdir=$folder/layer:$base,upperdir=$folder/disk/upper,workdir=$folder/disk/work" "$root"
for path in proc sys dev run tmp var/lib/docker var/lib/containerd var/lib/lab-engine; do mkdir -p "$root/$path"; done
bind "$folder/disk/docker" "$root/var/lib/docker"
bind "$folder/disk/containerd" "$root/var/lib/containerd"
bind "$folder/engine" "$root/var/lib/lab-engine"
if [ -d "$folder/vllm" ]; then
    mkdir -p "$root/opt/vllm"
    bind "$folder/vllm" "$root/opt/vllm"
    read_only "$root/opt/vllm"
fi

mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs "$root/run"
mkdir -p "$root/run/lock"
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/tmp"

# --- /dev
mount -t tmpfs -o mode=755,nosuid tmpfs "$root/dev"
for node in null zero full random urandom tty fuse; do
    if [ -e "/dev/$node" ]; then bind_file "/dev/$node" "$root/dev/$node"; fi
done
mkdir "$root/dev/pts" "$root/dev/shm" "$root/dev/mqueue" "$root/dev/net" "$root/dev/infiniband"
mount -t devpts -o newinstance,gid=5,mode=620,ptmxmode=0666 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/dev/shm"
mount -t mqueue mqueue "$root/dev/mqueue"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ln -s fd/0 "$root/dev/stdin"
ln -s fd/1 "$root/dev/stdout"
ln -s fd/2 "$root/dev/stderr"
bind_file "$tty" "$root/dev/console"
# No driver answers behind these; they are there to be handed into containers.
mknod "$root/dev/infiniband/rdma_cm" c 10 58
number=0
for hca in "$folder"/ib/*/; do
    mknod "$root/dev/infiniband/uverbs$number" c 231 $((192 + number))
    number=$((number + 1))
done
chmod 666 "$root"/dev/infiniband/*
if [ -e "$folder/rdma_off" ]; then mv "$root/dev/infiniband" "$root/dev/.infiniband"; fi

# --- /sys of this network namespace, with the simulated RDMA devices in it
mount -t sysfs -o nosuid,nodev,noexec sysfs "$root/sys"
class=$folder/class
mount -t tmpfs -o mode=755 tmpfs "$class"
for path in "$root"/sys/class/*/; do
    entry=$(basename "$path")
    mkdir "$class/$entry"
    bind "$path" "$class/$entry"
done
for pair in ib:infiniband pci:lab; do
    mkdir -p "$class/${pair#*:}"
    bind "$folder/${pair%:*}" "$class/${pair#*:}"
    read_only "$class/${pair#*:}"
done
mkdir -p "$class/dmi/id"
echo NVIDIA >"$class/dmi/id/sys_vendor"
cp "$folder/product_name" "$class/dmi/id/product_name"
mount --rbind "$class" "$root/sys/class"
for added in "$folder"/netdev/*; do
    netdev=$root/sys/devices/virtual/net/$(basename "$added")
    if [ -d "$netdev" ]; then mount -t overlay overlay -o "lowerdir=$added:$netdev" "$netdev"; fi
done

# --- control groups: the namespace makes the host's own group the root
mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 "$root/sys/fs/cgroup"
# Read-only on purpose: without udev, systemd-networkd then takes every link as ready.
read_only "$root/sys"

# --- /proc: this machine's settings are not the host's to change, except for its network
mkdir -p "$folder/sysctl"
for key in vm/swappiness vm/drop_caches vm/min_free_kbytes vm/overcommit_memory vm/max_map_count vm/compact_memory; do
    copy=$folder/sysctl/$(basename "$key")
    if [ ! -s "$copy" ]; then cat "/proc/sys/$key" >"$copy" 2>/dev/null || echo 0 >"$copy"; fi
done
bind "$root/proc/sys" "$root/proc/sys"
bind "$root/proc/sys/net" "$root/proc/sys/net"
read_only "$root/proc/sys"
bind "$folder/boot_id" "$root/proc/sys/kernel/random/boot_id"
for copy in "$folder"/sysctl/*; do bind "$copy" "$root/proc/sys/vm/$(basename "$copy")"; done
if [ -e "$root/proc/sysrq-trigger" ]; then
    bind "$root/proc/sysrq-trigger" "$root/proc/sysrq-trigger"
    read_only "$root/proc/sysrq-trigger"
fi
bind "$folder/cmdline" "$root/proc/cmdline"
bind "$folder/meminfo" "$root/proc/meminfo"

hostname "$name"
cd "$root"
mkdir -p run/old
pivot_root . run/old
exec chroot . /bin/sh -c '
    umount -l /run/old && rmdir /run/old && cd / &&
    exec env -i container=lab TERM=dumb PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        /sbin/init --log-target=console --show-status=1 </dev/console >/dev/console 2>&1'
