version=$(cat $R/containerd-version 2>/dev/null || echo 2.1.4)
case $1 in
  --version) echo "containerd github.com/containerd/containerd/v2 v$version 75cb2b7193e4" ;;
  --config)
    if [ -e $R/dump ]; then cat $R/dump; exit 0; fi
    # Like containerd: an old main file beside a new drop-in is ignored; a drop-in has the last word.
    cgroup=false; folder=/opt/cni/bin
    grep -q '^version = 3' $2 && grep -q 'SystemdCgroup = true' $2 && cgroup=true
    grep -qs 'bin_dir = ""' $R/etc/containerd/conf.d/*.toml && folder=
    printf "version = 3\nimports = ['/etc/containerd/config.toml']\n"
    printf "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]\nSystemdCgroup = $cgroup\n"
    printf "[plugins.'io.containerd.cri.v1.runtime'.cni]\nconf_dir = '/etc/cni/net.d'\n"
    case $version in
      2.0.*) printf "bin_dir = '$folder'\n" ;;
      *) printf "bin_dir = ''\nbin_dirs = ['$folder']\n" ;;
    esac ;;
esac
