# SPDX-License-Identifier: Apache-2.0
# Sourced by tests that need a Slurm, after lib.sh: start_slurm [LINE]... starts one
# of two nodes, n0 and n1, on this machine; each LINE is one more of slurm.conf. Its
# files are in $dir/slurm. start_accounting before it gives it a slurmdbd, whose lines
# for slurm.conf are $accounting.
PATH=$PATH:/usr/sbin

# need_slurm [PROGRAM]...: ends the test where there is none, or no PROGRAM
need_slurm() {
    missing=
    for program in munged slurmctld slurmd sbatch "$@"; do
        command -v $program >/dev/null || missing="$missing $program"
    done
    if [ -n "$missing" ] || [ "$(id -u)" != 0 ]; then
        skip "a real Slurm: not here:${missing:- root}"
        finish
    fi
}

# port: one that nothing listens on
port() {
    python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

write_slurm_conf() {
    host=$(hostname)
    cat >slurm/slurm.conf <<E2
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/slurm/munge.socket
CredType=cred/munge
StateSaveLocation=$dir/slurm/state
SlurmdSpoolDir=$dir/slurm/spool-%n
SlurmctldPidFile=$dir/slurm/ctld.pid
SlurmdPidFile=$dir/slurm/d-%n.pid
SlurmctldLogFile=$dir/slurm/ctld.log
SlurmdLogFile=$dir/slurm/d-%n.log
SlurmctldPort=$(port)
SlurmdTimeout=10
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
GresTypes=gpu
NodeName=n0 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(port) CPUs=1 Gres=gpu:a100:4
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$(port) CPUs=1 Gres=gpu:a100:4
PartitionName=p Nodes=n0,n1 Default=YES MaxTime=INFINITE State=UP
E2
    for line; do echo "$line"; done >>slurm/slurm.conf
    for file in null zero full random; do
        echo "Name=gpu Type=a100 File=/dev/$file"
    done >slurm/gres.conf
}

# listens PORT: waits until something does
listens() {
    python3 -c 'import socket, sys, time
for _ in range(600):
    with socket.socket() as s:
        if not s.connect_ex(("127.0.0.1", int(sys.argv[1]))):
            sys.exit(0)
    time.sleep(0.2)
sys.exit(1)' "$1"
}

# stop_slurm: the daemons that this test started
stop_slurm() {
    for file in ctld d-n0 d-n1 dbd munge maria; do
        [ -s "$dir/slurm/$file.pid" ] && kill "$(cat "$dir/slurm/$file.pid")"
    done 2>/dev/null
    sleep 1
}

start_munge() {
    [ -s slurm/munge.pid ] && return
    head -c 1024 /dev/urandom >slurm/key
    chmod 400 slurm/key
    trap 'stop_slurm; chmod -R u+rwX "$dir"; rm -rf "$dir"' EXIT
    munged --force --key-file="$dir/slurm/key" \
        --socket="$dir/slurm/munge.socket" --pid-file="$dir/slurm/munge.pid" \
        --log-file="$dir/slurm/munge.log" --seed-file="$dir/slurm/seed" \
        2>err || fail "munged"
}

# A database of its own, in the test's directory.
start_database() {
    mariadb-install-db --no-defaults --user=root --datadir="$dir/slurm/maria" \
        --auth-root-authentication-method=normal --skip-test-db >out 2>&1 ||
        fail "mariadb-install-db: $(tail -3 out)"
    mariadbd --no-defaults --user=root --datadir="$dir/slurm/maria" \
        --socket="$dir/slurm/maria.socket" --pid-file="$dir/slurm/maria.pid" \
        --bind-address=127.0.0.1 --port="$1" >slurm/maria.log 2>&1 &
    for i in $(seq 300); do
        mariadb --no-defaults --socket="$dir/slurm/maria.socket" --user=root -e \
            "CREATE USER slurm@'%' IDENTIFIED BY 'slurm'; GRANT ALL ON *.* TO slurm@'%'" \
            2>err && return
        sleep 0.2
    done
    fail "mariadbd: $(cat err; tail -3 slurm/maria.log)"
}

start_accounting() {
    mkdir -p slurm
    start_munge
    database=$(port)
    start_database "$database"
    dbd=$(port)
    cat >slurm/slurmdbd.conf <<E2
AuthType=auth/munge
AuthInfo=socket=$dir/slurm/munge.socket
DbdHost=$(hostname)
DbdAddr=127.0.0.1
DbdPort=$dbd
SlurmUser=root
PidFile=$dir/slurm/dbd.pid
LogFile=$dir/slurm/dbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$database
StorageUser=slurm
StoragePass=slurm
E2
    chmod 600 slurm/slurmdbd.conf
    SLURM_CONF=$dir/slurm/slurm.conf slurmdbd 2>err ||
        fail "slurmdbd: $(cat err)"
    listens "$dbd" || fail "slurmdbd: $(tail -3 slurm/dbd.log)"
    accounting="AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=$dbd
AccountingStoragePass=$dir/slurm/munge.socket
JobAcctGatherType=jobacct_gather/linux"
}

start_slurm() {
    mkdir -p slurm/state
    write_slurm_conf "$@"
    export SLURM_CONF=$dir/slurm/slurm.conf
    start_munge
    slurmctld 2>err || fail "slurmctld"
    for node in n0 n1; do
        slurmd -N $node 2>err || fail "slurmd of $node"
    done
    listens "$(sed -n 's/^SlurmctldPort=//p' slurm/slurm.conf)" || {
        fail "slurmctld: $(tail -3 slurm/ctld.log)"
        finish
    }
    for i in $(seq 300); do
        [ "$(sinfo --noheader --Node --format=%T 2>/dev/null | sort -u)" = idle ] && break
        sleep 0.2
    done
    sinfo --Node >out 2>&1
    is "nodes" "$(grep -c idle out)" 2
}
