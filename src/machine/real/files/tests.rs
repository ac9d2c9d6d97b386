use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::state::{Digest, OPENSM_FOLDER};

struct Image {
    folder: tempfile::TempDir,
    files: Files,
}

impl Image {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::image(folder.path()).unwrap();
        Self { folder, files }
    }

    fn at(&self, path: &str) -> std::path::PathBuf {
        path_of(path).under(self.folder.path())
    }

    fn write(&self, path: &str, text: &str, mode: u32) -> Result<(), MachineError> {
        let mut blobs = Blobs::default();
        let digest = blobs.insert(text.into());
        self.files.perform(&path_of(path), &State::File { digest, mode }, &blobs)
    }

    fn observe(&self, path: &str) -> State {
        self.files.observe(&path_of(path), &mut Blobs::default())
    }
}

fn path_of(path: &str) -> FilePath {
    path.parse().unwrap()
}

fn file(text: &str, mode: u32) -> State {
    State::File { digest: Digest::of(text.as_bytes()), mode }
}

#[test]
fn what_is_written_is_what_is_seen() {
    let image = Image::new();
    assert_eq!(image.observe("/etc/modprobe.d/a.conf"), State::Absent);
    image.write("/etc/modprobe.d/a.conf", "one", 0o644).unwrap();
    assert_eq!(image.observe("/etc/modprobe.d/a.conf"), file("one", 0o644));
    image.write("/etc/modprobe.d/a.conf", "two", 0o600).unwrap();
    assert_eq!(image.observe("/etc/modprobe.d/a.conf"), file("two", 0o600));
    assert_eq!(image.at("/etc/modprobe.d").metadata().unwrap().permissions().mode() & 0o7777, 0o755);
    assert_eq!(std::fs::read_dir(image.at("/etc/modprobe.d")).unwrap().count(), 1, "no temporary file is left");
    let path = path_of("/etc/modprobe.d/a.conf");
    image.files.perform(&path, &State::Absent, &Blobs::default()).unwrap();
    image.files.perform(&path, &State::Absent, &Blobs::default()).unwrap();
    assert_eq!(image.observe("/etc/modprobe.d/a.conf"), State::Absent);
}

#[test]
fn a_folder_is_left_when_it_is_empty_and_only_then() {
    let image = Image::new();
    std::fs::create_dir_all(image.at("/etc/selvedge")).unwrap();
    let conf = path_of(&format!("{OPENSM_FOLDER}compute.conf"));
    let missing = image.files.missing_above(&conf);
    assert_eq!(missing, [path_of(OPENSM_FOLDER.trim_end_matches('/'))], "only what is not there is to be made");
    image.write(conf.as_str(), "a", 0o644).unwrap();
    image.files.remove_folder(&missing[0]);
    assert_eq!(image.observe(conf.as_str()), file("a", 0o644));
    image.files.perform(&conf, &State::Absent, &Blobs::default()).unwrap();
    assert!(image.at(missing[0].as_str()).exists(), "a file does not take its folder along");
    image.files.remove_folder(&missing[0]);
    assert!(!image.at(missing[0].as_str()).exists());
}

#[test]
fn content_is_kept_by_its_digest() {
    let image = Image::new();
    image.write("/a", "text", 0o644).unwrap();
    let mut blobs = Blobs::default();
    image.files.observe(&path_of("/a"), &mut blobs);
    assert_eq!(blobs.get(&Digest::of(b"text")), Some(&b"text"[..]));
}

#[test]
fn a_link_is_replaced_and_never_written_through() {
    let image = Image::new();
    let outside = tempfile::NamedTempFile::new().unwrap();
    symlink(outside.path(), image.at("/a")).unwrap();
    assert!(matches!(image.observe("/a"), State::Symlink { .. }));
    image.write("/a", "new", 0o644).unwrap();
    assert_eq!(image.observe("/a"), file("new", 0o644));
    assert_eq!(std::fs::read(outside.path()).unwrap(), b"");
    let link = State::Symlink { target: "/dev/null".into() };
    image.files.perform(&path_of("/a"), &link, &Blobs::default()).unwrap();
    assert_eq!(image.observe("/a"), link);
}

#[test]
fn a_link_in_an_image_does_not_lead_out_of_it() {
    let image = Image::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir(image.at("/etc")).unwrap();
    symlink(outside.path(), image.at("/etc/netplan")).unwrap();
    assert_eq!(image.observe("/etc/netplan/a.yaml"), State::Absent);
    assert!(image.write("/etc/netplan/a.yaml", "x", 0o600).is_err(), "a dangling link is no folder");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    symlink("/usr/lib", image.at("/lib")).unwrap();
    std::fs::create_dir_all(image.at("/usr/lib")).unwrap();
    image.write("/lib/x", "x", 0o644).unwrap();
    assert_eq!(image.observe("/usr/lib/x"), file("x", 0o644), "its own links hold, from its root");
}

#[test]
fn what_is_no_file_is_unknown_and_stays() {
    let image = Image::new();
    std::fs::create_dir_all(image.at("/etc/a")).unwrap();
    assert!(matches!(image.observe("/etc/a"), State::Unknown { .. }));
    let error = image.write("/etc/a", "x", 0o644).unwrap_err();
    assert!(error.to_string().starts_with("cannot write /etc/a: "), "{error}");
    assert_eq!(std::fs::read_dir(image.at("/etc")).unwrap().count(), 1, "no temporary file is left");
    image.write("/file", "x", 0o644).unwrap();
    assert_eq!(image.observe("/file/below"), State::Absent);
}

#[test]
fn a_leftover_of_a_crash_is_in_nobodys_way() {
    let image = Image::new();
    std::fs::write(image.at("/.a.selvedge~"), "half").unwrap();
    image.write("/a", "whole", 0o644).unwrap();
    assert_eq!(image.observe("/a"), file("whole", 0o644));
    assert!(!image.at("/.a.selvedge~").exists());
}

#[test]
fn a_folder_of_an_image_is_never_outside_of_it() {
    let image = Image::new();
    let root = image.folder.path().canonicalize().unwrap();
    let place = |path: &str| image.files.place_of(path);
    assert_eq!(place("var/lib/selvedge").unwrap(), root.join("var/lib/selvedge"), "nothing is there yet");
    assert!(!root.join("var").exists(), "looking makes nothing");
    let outside = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(outside.path().join("lib/selvedge")).unwrap();
    symlink(outside.path(), image.at("/var")).unwrap();
    let error = place("var/lib/selvedge").unwrap_err();
    assert!(error.to_string().contains("/var is a link to a folder that the image does not have"), "{error}");
    std::fs::remove_file(image.at("/var")).unwrap();
    std::fs::create_dir_all(image.at("/var/lib")).unwrap();
    std::fs::create_dir_all(image.at("/persist")).unwrap();
    for link in ["/persist", "../../persist", "../../../../../../../persist"] {
        symlink(link, image.at("/var/lib/selvedge")).unwrap();
        assert_eq!(place("var/lib/selvedge").unwrap(), root.join("persist"), "{link}");
        std::fs::remove_file(image.at("/var/lib/selvedge")).unwrap();
    }
    std::fs::write(image.at("/var/lib/selvedge"), "").unwrap();
    assert!(place("var/lib/selvedge").is_err(), "a file is no folder");
    assert_eq!(Files::live().place_of("var/lib/selvedge").unwrap(), std::path::Path::new("/var/lib/selvedge"));
}
