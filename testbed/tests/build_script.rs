//! `build.sh`: its output, its caching, and its errors. Also the other build scripts, with an empty module
//! cache.

use std::{
    fs, io,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/build.sh");

/// Replaces Go: builds empty files, and downloads a module for each line of crds.txt. Like the real Go, `list
/// -m` prints
/// an empty line for a module that was not downloaded. Records its arguments.
const FAKE_GO: &str = r#"#!/bin/sh
echo "$*" >>"$CALLS"
case "$1 $2" in
"env GOVERSION") echo go99.0 ;;
"list tool") echo example.com/cmd/kubectl ;;
"build -trimpath")
    while [ "$1" != -o ]; do shift; done
    case "$2" in */) : >"$2${3##*/}" ;; *) : >"$2" ;; esac ;;
"list -m")
    if [ -d "$CALLS.modules/$5" ]; then echo "$CALLS.modules/$5"; else echo; fi ;;
"mod download")
    [ "$3" = -json ] || {
        directory=$CALLS.modules/$3
        mkdir -p "$directory/pkg/webhook" "$directory/config/webhook" "$directory/kwok/apis/crds"
        echo 'JoinHostPort(s.Options.Host, port)' >"$directory/pkg/webhook/server.go"
        : >"$directory/config/webhook/manifests.yaml"
        : >"$directory/kwok/apis/crds/karpenter.kwok.sh_kwoknodeclasses.yaml"
        exit
    }
    module=${4%@*}
    directory=$CALLS.modules/$module
    while read -r name version files folder checksum; do
        [ "$name" = "$module" ] || continue
        mkdir -p "$directory/$(dirname "$files")"
        : >"$directory/$(dirname "$files")/$(basename "$files" | tr '*' x)"
        sum=$checksum
    done <"$CRDS"
    printf '{\n\t"Dir": "%s",\n\t"Sum": "%s"\n}\n' "$directory" "$sum" ;;
esac
"#;

#[test]
fn a_second_run_prints_the_directory_without_network_access() -> io::Result<()> {
    let place = Place::new()?;
    place.install_go(FAKE_GO)?;
    let first = place.build().output()?;
    let directory = only_line(&first.stdout);
    assert!(directory.starts_with(&*place.cache().to_string_lossy()));
    assert!(Path::new(&directory).join("bin/kubectl").is_file());
    assert!(Path::new(&directory).join("crds/karpenter/x.yaml").is_file());
    let progress = lines(&first.stderr);
    let building = "testbed: building etcd (1 of 5) ...";
    assert!(progress.iter().any(|line| line == building), "{progress:#?}");

    let calls = place.calls()?;
    let second = place.build().output()?;
    assert_eq!(second.stdout, first.stdout);
    assert_eq!(lines(&second.stderr), [""; 0]);
    assert_eq!(place.calls()?, calls);
    Ok(())
}

#[test]
fn only_the_programs_that_are_asked_for_are_built_and_others_are_added_later() -> io::Result<()> {
    let place = Place::new()?;
    place.install_go(FAKE_GO)?;
    let first = place.build().args(["etcd", "kubectl"]).output()?;
    let bin = Path::new(&only_line(&first.stdout)).join("bin");
    assert!(bin.join("etcd").is_file() && bin.join("kubectl").is_file());
    assert!(!bin.join("kube-scheduler").exists());
    let all = place.build().output()?;
    assert_eq!(all.stdout, first.stdout);
    assert!(bin.join("kube-scheduler").is_file());
    let calls = place.calls()?;
    let builds = calls.iter().filter(|it| it.starts_with("build")).count();
    assert_eq!(builds, 5, "each program once: {calls:#?}");
    Ok(())
}

#[test]
fn two_runs_at_once_build_once() -> io::Result<()> {
    let place = Place::new()?;
    place.install_go(FAKE_GO)?;
    let mut build = place.build();
    let first = build.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let second = place.build().output()?;
    let first = first.wait_with_output()?;
    assert!(first.status.success() && second.status.success());
    assert_eq!(first.stdout, second.stdout);
    let calls = place.calls()?;
    let builds = calls.iter().filter(|it| it.starts_with("build")).count();
    assert_eq!(builds, 5, "each program once: {calls:#?}");
    Ok(())
}

#[test]
fn a_failed_build_quotes_the_compiler_and_leaves_nothing_behind() -> io::Result<()> {
    let place = Place::new()?;
    place.install_go(
        &FAKE_GO
            .replace("while [ \"$1\" != -o ]; do shift; done", "echo 'no such planet' >&2; exit 1"),
    )?;
    let output = place.build().output()?;
    assert!(!output.status.success());
    let lines = lines(&output.stderr);
    let [.., quoted, last] = lines.as_slice() else { panic!("{lines:#?}") };
    assert_eq!(quoted, "no such planet");
    assert!(last.starts_with("testbed: building etcd (1 of 5) failed"));

    let left: Vec<_> = fs::read_dir(place.cache().join("testbed"))?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<io::Result<_>>()?;
    assert_eq!(left, ["lock"]);
    Ok(())
}

#[test]
fn a_module_with_another_checksum_is_refused() -> io::Result<()> {
    let place = Place::new()?;
    place.install_go(&FAKE_GO.replace("sum=$checksum", "sum=h1:other"))?;
    let output = place.build().output()?;
    assert!(!output.status.success());
    let lines = lines(&output.stderr);
    let last = lines.last().unwrap();
    assert!(last.contains("has the checksum h1:other, crds.txt says h1:"));
    Ok(())
}

#[test]
fn a_missing_go_is_one_clear_line() -> io::Result<()> {
    let place = Place::new()?;
    let message = place.refusal()?;
    assert!(message.contains("or newer is needed, and go is not in PATH: get it from"));
    Ok(())
}

#[test]
fn a_go_that_is_too_old_is_one_clear_line() -> io::Result<()> {
    let place = Place::new()?;
    place.install_go("#!/bin/sh\necho go1.20.1\n")?;
    let needed = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/go.mod"))?;
    let needed = needed.lines().find_map(|line| line.strip_prefix("go "));
    let expected =
        format!("testbed: Go {} or newer is needed, found 1.20.1: get it from", needed.unwrap());
    let message = place.refusal()?;
    assert!(message.starts_with(&expected), "{message}");
    Ok(())
}

#[test]
fn a_cache_directory_that_cannot_be_written_is_one_clear_line() -> io::Result<()> {
    let place = Place::new()?;
    place.install_go(FAKE_GO)?;
    fs::write(place.cache(), "a file where a directory should be")?;
    let message = place.refusal()?;
    assert!(message.starts_with("testbed: cannot write to the cache directory"));
    assert!(message.ends_with("set BRINGUP_CACHE to another one"));
    Ok(())
}

#[test]
fn ready_made_programs_are_used_and_what_they_lack_is_said() -> io::Result<()> {
    let place = Place::new()?;
    place.install_go(FAKE_GO)?;
    let ready_made = place.root.path().join("ready-made");
    fs::create_dir(&ready_made)?;
    for program in ["etcd", "kube-apiserver", "kubectl"] {
        executable(&ready_made.join(program), "")?;
    }
    let output = place.build().env("KUBEBUILDER_ASSETS", &ready_made).output()?;
    let expected = format!(
        "testbed: using the programs in {}, which lacks kube-controller-manager kube-scheduler",
        ready_made.display()
    );
    assert_eq!(lines(&output.stderr)[0], expected);
    let bin = Path::new(&only_line(&output.stdout)).join("bin");
    assert_eq!(fs::read_link(bin.join("etcd"))?, ready_made.join("etcd"));
    assert!(!bin.join("kube-scheduler").exists());
    assert!(place.calls()?.iter().all(|it| !it.starts_with("build")));
    Ok(())
}

#[test]
fn every_build_script_downloads_the_modules_it_takes_files_from() -> io::Result<()> {
    let scripts = build_scripts()?;
    assert!(scripts.len() >= 4, "{scripts:#?}");
    for script in scripts {
        let place = Place::new()?;
        place.install_go(FAKE_GO)?;
        let output = place.run(&script).output()?;
        let said = lines(&output.stderr);
        assert!(output.status.success(), "{}: {said:#?}", script.display());
        assert!(Path::new(&only_line(&output.stdout)).exists(), "{}", script.display());
    }
    Ok(())
}

#[test]
fn a_module_without_a_folder_is_one_clear_line() -> io::Result<()> {
    let nowhere = FAKE_GO.replace("if [ -d \"$CALLS.modules/$5\" ]", "if false");
    let nowhere = nowhere.replace("\"Dir\": \"%s\"", "\"Path\": \"%s\"");
    for script in build_scripts()? {
        let text = fs::read_to_string(&script)?;
        if !text.contains("folder_of") && !text.contains("field Dir") {
            continue;
        }
        let place = Place::new()?;
        place.install_go(&nowhere)?;
        let output = place.run(&script).output()?;
        let said = lines(&output.stderr);
        assert!(!output.status.success(), "{}: {said:#?}", script.display());
        let last = said.last().unwrap();
        let expected = ": go lists no folder of ";
        assert!(last.contains(expected), "{}: {said:#?}", script.display());
    }
    Ok(())
}

/// Every `build.sh` of the repository.
fn build_scripts() -> io::Result<Vec<PathBuf>> {
    let mut scripts = Vec::new();
    let mut folders = vec![PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if entry.file_type()?.is_dir() && name != "target" && name != ".git" {
                folders.push(entry.path());
            } else if name == "build.sh" {
                scripts.push(entry.path());
            }
        }
    }
    Ok(scripts)
}

/// A build environment with a cache of its own and only the programs that the script needs.
struct Place {
    root: TempDir,
}

impl Place {
    fn new() -> io::Result<Self> {
        let root = tempfile::tempdir()?;
        let path = root.path().join("path");
        fs::create_dir(&path)?;
        for program in [
            "awk",
            "basename",
            "bash",
            "cat",
            "chmod",
            "cmp",
            "cp",
            "cut",
            "dirname",
            "env",
            "find",
            "flock",
            "head",
            "ln",
            "mkdir",
            "mktemp",
            "mv",
            "rm",
            "sed",
            "sha256sum",
            "shasum",
            "sleep",
            "sort",
            "tail",
            "touch",
            "tr",
            "xargs",
        ] {
            if let Some(found) = find_in_path(program) {
                symlink(found, path.join(program))?;
            }
        }
        Ok(Self { root })
    }

    fn cache(&self) -> PathBuf {
        self.root.path().join("cache")
    }

    fn install_go(&self, script: &str) -> io::Result<()> {
        executable(&self.root.path().join("path/go"), script)
    }

    fn build(&self) -> Command {
        self.run(Path::new(SCRIPT))
    }

    fn run(&self, script: &Path) -> Command {
        let mut command = Command::new(script);
        command
            .env("PATH", self.root.path().join("path"))
            .env("BRINGUP_CACHE", self.cache())
            .env("CALLS", self.root.path().join("calls"))
            .env("CRDS", concat!(env!("CARGO_MANIFEST_DIR"), "/crds.txt"))
            .env_remove("KUBEBUILDER_ASSETS");
        command
    }

    /// The only output line of a script that refuses to build.
    fn refusal(&self) -> io::Result<String> {
        let Output { status, stdout, stderr } = self.build().output()?;
        assert!(!status.success());
        assert_eq!(lines(&stdout), [""; 0]);
        Ok(only_line(&stderr))
    }

    fn calls(&self) -> io::Result<Vec<String>> {
        fs::read(self.root.path().join("calls")).map(|text| lines(&text))
    }
}

fn find_in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

fn executable(path: &Path, contents: &str) -> io::Result<()> {
    fs::write(path, contents)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

fn lines(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    text.lines().map(ToOwned::to_owned).collect()
}

fn only_line(text: &[u8]) -> String {
    let mut lines = lines(text);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    lines.remove(0)
}
