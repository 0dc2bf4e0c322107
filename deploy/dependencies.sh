#!/usr/bin/env bash
# Installs the Debian packages that loopfleet is built from. The list below is the only one.
#
#   deploy/dependencies.sh            what building and running needs
#   deploy/dependencies.sh --tests    and what the tests need besides
#   deploy/dependencies.sh --bench    and what the benchmarks compare with; a peer that is not there is null
#   deploy/dependencies.sh --only-runtime   only what programs need that were built elsewhere
#   deploy/dependencies.sh --list     only print the names
#
# Does nothing, quickly, when everything is there. Needs root or sudo otherwise, and says what it does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build_packages=(
  # tools
  g++ cmake ninja-build make pkg-config ca-certificates python3 sqlite3
  # messages
  libzmq3-dev cppzmq-dev libsodium-dev libcapnp-dev capnproto
  # storage, metrics, compiler
  libsqlite3-dev libpqxx-dev libxxhash-dev prometheus-cpp-dev libcivetweb-dev llvm-19-dev
  # graphs of programs, compressed
  libzstd-dev
  # programs of the LLVM environment: generators, compiler, assembler
  csmith libcsmith-dev clang-19 llvm-19
  # the coordinator's memory
  libmimalloc-dev
  # isolation of kernels
  libseccomp-dev
  # command line, configuration, text
  libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libfmt-dev libspdlog-dev
  # tests; the build goes on without it and says so
  libgtest-dev
)
# What bundles the web page. A Node.js from elsewhere brings its npm along, and Debian's npm would
# take its place: both programs are asked for, not both packages. LOOPFLEET_PAGE=OFF does without.
page=${LOOPFLEET_PAGE:-ON}
if [ "$page" != OFF ]; then
  command -v node >/dev/null || build_packages+=(nodejs)
  command -v npm >/dev/null || build_packages+=(npm)
fi
# The libraries of those above, without what compiles.
runtime_packages=(
  libzmq5 libsodium23 libcapnp-0.9.2 libsqlite3-0 libpqxx-6.4 libxxhash0 libprometheus-cpp-core1.0 libcivetweb1 libllvm19
  libseccomp2 libzstd1 libtomlplusplus3 libfmt9 libspdlog1.10 libmimalloc2.0
  csmith libcsmith-dev clang-19 llvm-19
)
test_packages=(
  # tests run kernels for AArch64, and a worker, under emulation
  qemu-user-static qemu-system-arm gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross
  prometheus prometheus-alertmanager  # tests let real servers watch a fleet; promtool checks our rules
  postgresql  # tests let a real server take the outcomes
  zsh fish  # two of the shells that one test completes commands in
  faketime  # one test has the wall clock of a coordinator jump
  jq  # the examples of docs/LOOP_TREES.md, which a test runs, use it
  python3-dev python3-venv  # the Python package and its tests (tests/python/make_environment.sh)
  python3-networkx graphviz  # one test gives them the graphs that `loopfleet replay` exports
  python3-pip  # fetches test_wheels
  clang-format-19  # the test `format`
  tmux  # one test looks at the schedule editor on a terminal
  chromium  # the page's tests look at it with a browser
  slurmctld slurmd slurm-client munge  # one test gets its workers from a real Slurm of one node
  python3-yaml  # reads deploy/kubernetes and deploy/compose in tests
  docker-compose  # checks deploy/compose; no container is started
  zlib1g-dev libncurses-dev  # archives inside tests/gpu's program
  dpkg-dev lintian mmdebstrap umoci skopeo  # deploy/release.sh makes packages, and tests install them
)
# Tests run WebAssembly kernels; the page asks for the same program.
if [ "$page" = OFF ] && ! command -v node >/dev/null; then test_packages+=(nodejs); fi

# From PyPI, unpacked into wheel_folder, where the programs look for them: NVIDIA's assembler for GPU
# code, and the compiler that one benchmark compares with. Neither needs a GPU. Without them what
# needs them is skipped, and says so.
wheel_folder=/usr/local/lib/loopfleet
test_wheels=(nvidia-nvjitlink==13.0.88)
bench_wheels=(nvidia-cuda-nvrtc==13.0.88)

bench_packages=(
  # matrix products: libraries, each on one thread
  libopenblas0-serial libblis4-serial libxsmm-dev
  python3-numpy       # the article's workload, and an addition
  python3-matplotlib  # bench/plot_timing.py
  libhalide14-0-dev   # evaluations per second, and its autoschedulers
  python3-venv        # TVM's environment (bench/make_environment.sh)
  redis-server beanstalkd nats-server  # queues: each benchmark starts its own
)

packages=("${build_packages[@]}")
wheels=()
page_options=()
list_only=no
for argument in "$@"; do
  case $argument in
    --tests) packages+=("${test_packages[@]}") wheels+=("${test_wheels[@]}") page_options=(--tests) ;;
    --bench) packages+=("${bench_packages[@]}" python3-pip) wheels+=("${test_wheels[@]}" "${bench_wheels[@]}") ;;
    # The page is built into the coordinator: running it needs nothing of what it is made from.
    --only-runtime) packages=("${runtime_packages[@]}") page=OFF ;;
    --list) list_only=yes ;;
    -h | --help)
      sed -n '2,10s/^# \{0,1\}//p' deploy/dependencies.sh
      exit 0
      ;;
    *)
      echo "dependencies: unknown argument '$argument'; see --help" >&2
      exit 2
      ;;
  esac
done
if [ "$list_only" = yes ]; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

say() { echo "dependencies: $*" >&2; }

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  say "this is no Debian system (there is no apt-get). These are needed, by their Debian 12 names:"
  printf '  %s\n' "${packages[@]}" >&2
  say "install them your way, then run: cmake --workflow --preset release"
  exit 1
fi

# Of the names given: those that are not installed, on one line.
not_installed() {
  local installed name
  # dpkg-query fails if it has never heard of one of them; it prints the others all the same.
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  for name in "$@"; do
    grep -qxF "installed $name" <<<"$installed" || printf '%s ' "$name"
  done
}

as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi

can_be_root() { [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null; }

# What to run as root where there is no way to become it here.
need_root() {
  if can_be_root; then return 0; fi
  say "not root, and there is no sudo. As root, run: $*"
  exit 1
}

# Each wheel asked for that is not there in that version, in a folder of its own (they share file
# names); a failure is no error of ours.
install_wheels() {
  local wheel name
  for wheel in ${wheels[@]+"${wheels[@]}"}; do
    name=${wheel%%==*}
    if [ -d "$wheel_folder/$name/${name//-/_}-${wheel##*==}.dist-info" ]; then continue; fi
    if ! can_be_root; then
      say "WITHOUT $wheel: what needs it will be skipped (not root, and there is no sudo)"
      continue
    fi
    say "fetching $wheel from PyPI into $wheel_folder/$name"
    if ! "${as_root[@]}" python3 -m pip install -q --no-deps --root-user-action=ignore \
      --disable-pip-version-check --upgrade --target "$wheel_folder/$name" "$wheel" >&2; then
      say "WITHOUT $wheel: what needs it will be skipped"
    fi
  done
}

# What the page is made of, from npm, for every tree with this list of versions on this machine.
install_page_packages() {
  [ "$page" != OFF ] || return 0
  local folder
  folder=$wheel_folder/page-$(sha256sum monitoring/page/package-lock.json | cut -c1-12)
  [ ! -d "$folder/node_modules/${page_options:+playwright-core}" ] || return 0
  need_root "monitoring/page/fetch_packages.sh${page_options:+ ${page_options[*]}} $folder"
  say "fetching the web page's packages from npm into $folder"
  if ! "${as_root[@]}" monitoring/page/fetch_packages.sh ${page_options[@]+"${page_options[@]}"} "$folder"; then
    say "they could not be fetched. To build without the page, set LOOPFLEET_PAGE=OFF"
    exit 1
  fi
}

read -r -a missing <<<"$(not_installed "${packages[@]}")"
if [ ${#missing[@]} -eq 0 ]; then
  install_wheels
  install_page_packages
  say "all ${#packages[@]} packages are installed"
  exit 0
fi

need_root "apt-get install ${missing[*]}"

policy=/usr/sbin/policy-rc.d
saved_policy=$policy.before-loopfleet

# Debian asks this program before it starts a daemon that it has just installed: ours says no for as
# long as this script lives, and passes the question on to the machine's own program after that. So
# even a killed script leaves no trace in what the machine does.
forbid_daemon_starts() {
  restore_daemon_starts
  if [ -e "$policy" ]; then "${as_root[@]}" mv "$policy" "$saved_policy"; fi
  trap restore_daemon_starts EXIT
  "${as_root[@]}" tee "$policy" >/dev/null <<POLICY
#!/bin/sh
# Written by loopfleet's deploy/dependencies.sh, process $$, while it installs packages.
[ -d /proc/$$ ] && exit 101
[ -x $saved_policy ] && exec $saved_policy "\$@"
exit 0
POLICY
  "${as_root[@]}" chmod 755 "$policy"
}

restore_daemon_starts() {
  if [ -e "$policy" ] && grep -q "loopfleet's deploy/dependencies.sh" "$policy"; then
    "${as_root[@]}" rm -f "$policy"
  fi
  if [ -e "$saved_policy" ]; then "${as_root[@]}" mv "$saved_policy" "$policy"; fi
}

update_lists() {
  say "apt-get update"
  "${as_root[@]}" apt-get update -q >&2
}

# Of the names given: those that apt could not install now, on one line.
not_available() {
  local name policy_text
  for name in "$@"; do
    policy_text=$(apt-cache policy "$name" 2>/dev/null || true)
    grep -q '^  Candidate: [^(]' <<<"$policy_text" || printf '%s ' "$name"
  done
}

install_missing() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}" </dev/null >&2
}

say "installing ${#missing[@]} packages${as_root[0]:+ through sudo}: ${missing[*]}"
updated=no
if [ -n "$(not_available "${missing[@]}")" ]; then
  update_lists
  updated=yes
fi
read -r -a unavailable <<<"$(not_available "${missing[@]}")"
if [ ${#unavailable[@]} -gt 0 ]; then
  say "this system's archives do not have: ${unavailable[*]}"
  say "loopfleet is built for Debian 12 (bookworm); elsewhere, find these packages first"
  exit 1
fi

forbid_daemon_starts
if ! install_missing; then
  # Lists that are too old name files that the archive has replaced.
  if [ "$updated" = yes ]; then exit 1; fi
  update_lists
  install_missing
fi
restore_daemon_starts
trap - EXIT

for daemon in prometheus prometheus-alertmanager munge slurmctld slurmd redis-server beanstalkd nats-server; do
  case " ${missing[*]} " in
    *" $daemon "*)
      say "$daemon is installed for tests and benchmarks, which start their own: not started, and disabled"
      if command -v update-rc.d >/dev/null; then
        "${as_root[@]}" update-rc.d "$daemon" disable >&2 || say "could not disable its service"
      fi
      ;;
  esac
done

read -r -a still_missing <<<"$(not_installed "${packages[@]}")"
if [ ${#still_missing[@]} -gt 0 ]; then
  say "still missing: ${still_missing[*]}"
  exit 1
fi
install_wheels
install_page_packages
say "done"
