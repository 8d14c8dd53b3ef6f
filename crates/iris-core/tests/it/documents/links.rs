//! Every relative link of the documentation leads to a file, and its fragment to a heading.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::root;

/// Folders that are not the repository's own.
const ELSEWHERE: [&str; 5] = ["target", "node_modules", "corpus", "artifacts", "golden"];

fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') || ELSEWHERE.contains(&name.as_str()) {
                continue;
            }
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The text without blocks and spans of code.
fn prose(text: &str) -> String {
    let mut prose = String::new();
    let mut in_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            // Every second part stands between backticks.
            prose.extend(line.split('`').step_by(2));
            prose.push('\n');
        }
    }
    prose
}

fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    prose.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

/// What a heading is called in an address, as GitHub makes it.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut in_block = false;
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        in_block ^= line.starts_with("```");
        if let Some(heading) = line.strip_prefix('#').filter(|_| !in_block) {
            let heading = heading.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
            anchors.insert(kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect());
        }
    }
    anchors
}

fn broken(page: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() { page.to_owned() } else { page.parent().unwrap().join(file) };
    if !target.exists() {
        return Some(format!("{}: {link}: no such file", page.display()));
    }
    let is_page = target.extension().is_some_and(|ending| ending == "md");
    let leads = fragment.is_empty() || !is_page || anchors(&fs::read_to_string(&target).unwrap()).contains(fragment);
    (!leads).then(|| format!("{}: {link}: no such heading", page.display()))
}

/// Guarantees: no link of any page leads nowhere, and every page of `docs` is found from its table of contents.
#[test]
fn every_link_leads_somewhere() {
    let (pages, mut wrong, mut seen) = (pages(), Vec::new(), 0);
    for page in &pages {
        for link in links(&fs::read_to_string(page).unwrap()) {
            seen += 1;
            wrong.extend(broken(page, &link));
        }
    }
    assert!(pages.len() > 20 && seen > 50, "{} pages with {seen} links: the test reads nothing", pages.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let contents = fs::read_to_string(root().join("docs/README.md")).unwrap();
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        let is_listed = name == "README.md" || !name.ends_with(".md") || contents.contains(&name);
        assert!(is_listed, "docs/{name} is not in docs/README.md");
    }
}

#[test]
fn links_are_read_as_they_are_shown() {
    let text = "[a](b.md#c) `[no](x)`\n```\n[no](y)\n```\n![d](e.png)";
    assert_eq!(links(text), ["b.md#c", "e.png"]);
    assert!(anchors("# The judge's `keys`, and more\n```\n# not one\n```").contains("the-judges-keys-and-more"));
}
