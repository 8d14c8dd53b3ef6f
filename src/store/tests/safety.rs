//! The engine touches nothing but its file; readers cannot write; damage and strangers are told apart.

use std::io::{BufRead, BufReader, Write as _};
use std::time::{Duration, Instant};

use iris_core::model::Lane;

use super::fixtures::*;
use super::writing::count;
use crate::deleted::Deletions;
use crate::store::{Config, Error, Store, Write, open};

async fn ask(store: &Store, sql: &str) -> Result<Vec<String>, Error> {
    let sql = sql.to_owned();
    let read = |row: &duckdb::Row<'_>| Ok(format!("{:?}", row.get_ref(0).map_err(Error::engine)?));
    store.inner.readers.read(move |reader| reader.rows(&sql, &[], read)).await
}

/// Scenario: hostile statements reach a reader.
/// Guarantees: each is refused, alone or hidden behind another, and nothing changed.
#[test]
fn readers_only_read() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        store.send_async(packed(rows(1, 1, 3))).await.unwrap();
        store.flush().await.unwrap();
        let outside = home.path().join("outside");
        std::fs::write(outside.with_extension("csv"), "a\n1\n").unwrap();
        let outside = outside.display();
        for sql in [
            "DELETE FROM spans".to_owned(),
            "COMMIT; DELETE FROM spans".to_owned(),
            "SELECT 1; DELETE FROM spans".to_owned(),
            "SELECT 1; COMMIT; DELETE FROM spans; SELECT 2".to_owned(),
            "WITH x AS (SELECT 1) DELETE FROM spans".to_owned(),
            "WITH x AS (SELECT 1) UPDATE spans SET name = 'x'".to_owned(),
            "INSERT INTO positions VALUES (1,1,1,1,1,1)".to_owned(),
            "CREATE TABLE x (a INTEGER)".to_owned(),
            "DROP TABLE spans".to_owned(),
            format!("COPY spans TO '{outside}.out'"),
            format!("EXPORT DATABASE '{outside}'"),
            format!("ATTACH '{outside}.duckdb' AS other"),
            "INSTALL httpfs".to_owned(),
            "LOAD httpfs".to_owned(),
            "SET threads = 8".to_owned(),
            "SET enable_external_access = true".to_owned(),
            "PRAGMA enable_external_access".to_owned(),
            "CHECKPOINT".to_owned(),
            format!("SELECT * FROM read_csv('{outside}.csv')"),
            format!("SELECT * FROM '{outside}.csv'"),
            format!("FROM read_text('{outside}.csv')"),
            format!("SELECT * FROM glob('{outside}*')"),
            String::new(),
            ";".to_owned(),
        ] {
            let answer = ask(&store, &sql).await;
            assert!(answer.is_err(), "{sql}: {answer:?}");
        }
        assert_eq!(count(&store, "spans").await, 3);
        assert_eq!(ask(&store, "SELECT 'it reads'").await.unwrap(), ["Text([105, 116, 32, 114, 101, 97, 100, 115])"]);
    });
}

/// Scenario: the same hostile statements, past the check of their first word, straight to the engine.
/// Guarantees: the engine itself refuses them: the check is not the only wall.
#[test]
fn the_engine_is_a_second_wall() {
    let home = tempfile::tempdir().unwrap();
    let connection = open::engine(home.path(), &Config::default()).unwrap();
    let reader = open::clone_of(&connection).unwrap();
    let outside = home.path().join("x");
    let outside = outside.display();
    for sql in [
        "DELETE FROM spans".to_owned(),
        format!("COPY spans TO '{outside}.csv'"),
        format!("ATTACH '{outside}.duckdb' AS other"),
        "INSTALL httpfs".to_owned(),
        "LOAD httpfs".to_owned(),
        "SET threads = 8".to_owned(),
        "SET memory_limit = '1GB'".to_owned(),
        "SET enable_external_access = true".to_owned(),
        "SET lock_configuration = false".to_owned(),
        "RESET lock_configuration".to_owned(),
        format!("SELECT * FROM read_csv('{outside}.csv')"),
        format!("SELECT * FROM read_text('{outside}.csv')"),
    ] {
        reader.execute_batch("BEGIN TRANSACTION READ ONLY").unwrap();
        assert!(reader.execute_batch(&sql).is_err(), "{sql}");
        reader.execute_batch("ROLLBACK").unwrap();
    }
    let threads: i64 = reader.query_row("SELECT current_setting('threads')", [], |row| row.get(0)).unwrap();
    assert_eq!(threads, 1);
}

/// Scenario: a query would run for minutes.
/// Guarantees: it is stopped at its deadline, and the reader works again.
#[test]
fn a_slow_query_is_stopped() {
    const SLOW: &str = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE (a.range * b.range) % 7 = 3";
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) =
            Store::open(home.path(), &Config { read_deadline_ms: 200, readers: 1, ..config() }, Deletions::default())
                .unwrap();
        let started = Instant::now();
        let answer = ask(&store, SLOW).await;
        assert!(matches!(answer, Err(Error::Deadline(_))), "{answer:?}");
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        assert_eq!(count(&store, "spans").await, 0);
        // An asker that gives up frees the reader too.
        assert!(tokio::time::timeout(Duration::from_millis(20), ask(&store, SLOW)).await.is_err());
        assert_eq!(count(&store, "spans").await, 0);
        // One that had no turn is not told that it was slow.
        let (go, gone) = std::sync::mpsc::channel::<()>();
        let holds = store.inner.readers.read(move |_| gone.recv().map_err(|_| Error::Closed));
        let waits = async {
            let answer = ask(&store, "SELECT 1").await;
            go.send(()).unwrap();
            answer
        };
        let (_, waited) = tokio::join!(biased; holds, waits);
        assert!(matches!(waited, Err(Error::Busy(_))), "{waited:?}");
    });
}

/// Scenario: a newer binary has written the file.
/// Guarantees: it is refused with both versions and left alone.
#[test]
fn a_newer_schema_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let connection = open::engine(home.path(), &Config::default()).unwrap();
    connection.execute_batch("INSERT INTO schema_version VALUES (99, '7.0.0', now()::TIMESTAMP)").unwrap();
    drop(connection);
    let error = Store::open(home.path(), &config(), Deletions::default()).err().unwrap();
    assert!(matches!(error, Error::Newer { found: 99, known: 3, .. }), "{error:?}");
    assert!(error.to_string().contains("use 7.0.0 or newer"), "{error}");
}

/// Scenario: a file that is no database lies in its place.
/// Guarantees: damage is called damage, the file is set aside, and the store goes on with a new one.
#[test]
fn garbage_is_set_aside() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("iris.duckdb"), [b'x'; 20_000]).unwrap();
    assert!(matches!(open::engine(home.path(), &config()), Err(Error::Corrupt(_))));
    let (_store, boot) = open(home.path());
    assert_eq!(boot.damage.len(), 1);
    assert_eq!(boot.damage[0].part, crate::store::DamagedPart::Main);
    assert_eq!(boot.damage[0].salvaged, Some(crate::store::Salvaged::default()), "nothing could be read");
    let aside: Vec<_> = std::fs::read_dir(home.path().join("duckdb/set-aside")).unwrap().collect();
    assert_eq!(aside.len(), 1);
}

/// Scenario: the write-ahead log is damaged in its middle, the main file is whole.
/// Guarantees: only the log is set aside; what a checkpoint contains is there, and its position with it.
#[test]
fn a_damaged_log_costs_only_the_log() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        for (seq, checkpoint) in [(1, true), (2, false)] {
            store.send_async(Write::Record { lane: Lane::Traces, seq, rows: 50 }).await.unwrap();
            store.send_async(packed(rows(seq, seq, 50))).await.unwrap();
            if checkpoint { store.checkpoint().await.unwrap() } else { store.flush().await.unwrap() }
        }
        store.release().await;
        let log = home.path().join("iris.duckdb.wal");
        let mut bytes = std::fs::read(&log).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 64].fill(0xff);
        std::fs::write(&log, bytes).unwrap();
        let (store, boot) = open(home.path());
        assert_eq!(boot.damage.len(), 1);
        assert_eq!((boot.damage[0].part, &boot.damage[0].salvaged), (crate::store::DamagedPart::Log, &None));
        assert_eq!(boot.stored_through.traces, 1);
        assert_eq!(count(&store, "spans").await, 50);
    });
}

/// Scenario: the engine gives up on the file in the middle of its life; meanwhile nothing happens to its log, or it is
/// damaged, or gone.
/// Guarantees: with a whole log the same store goes on with every row; otherwise it ends, lets go of the file, and a store
/// that is opened as at a start has what the checkpoint has and the positions for the journal to be read from.
#[test]
fn a_store_that_cannot_be_opened_again_ends_for_a_start() {
    for harm in ["none", "damaged", "gone"] {
        let home = tempfile::tempdir().unwrap();
        runtime().block_on(async {
            let (store, _) = open(home.path());
            for (seq, checkpoint) in [(1, true), (2, false)] {
                store.send_async(Write::Record { lane: Lane::Traces, seq, rows: 50 }).await.unwrap();
                store.send_async(packed(rows(seq, seq, 50))).await.unwrap();
                if checkpoint { store.checkpoint().await.unwrap() } else { store.flush().await.unwrap() }
            }
            let log = home.path().join("iris.duckdb.wal");
            match harm {
                "damaged" => {
                    let mut bytes = std::fs::read(&log).unwrap();
                    let middle = bytes.len() / 2;
                    bytes[middle..middle + 64].fill(0xff);
                    std::fs::write(&log, bytes).unwrap();
                }
                "gone" => std::fs::remove_file(&log).unwrap(),
                _ => {}
            }
            store.break_engine().await;
            if harm == "none" {
                until("it goes on", || store.status().failed.is_none()).await;
                assert_eq!(count(&store, "spans").await, 100);
                store.send_async(packed(rows(3, 3, 7))).await.unwrap();
                store.flush().await.unwrap();
                assert_eq!(count(&store, "spans").await, 107);
                return;
            }
            tokio::time::timeout(Duration::from_secs(20), store.ended()).await.expect("it ends");
            assert!(matches!(store.flush().await, Err(Error::Closed)));
            store.release().await;
            let refused = ask(&store, "SELECT 1").await;
            assert!(refused.as_ref().is_err_and(Error::is_retryable), "{refused:?}");
            let (store, boot) = open(home.path());
            assert_eq!(boot.damage.len(), usize::from(harm == "damaged"), "{harm}: {boot:?}");
            assert_eq!(boot.stored_through.traces, 1, "{harm}");
            assert_eq!(count(&store, "spans").await, 50, "{harm}");
        });
    }
}

/// Scenario (field case G8-08): questions that sort more than the engine's memory holds, within and beyond what may be
/// spilled; JSON, times with a zone; twins: what would need an extension from elsewhere, and files beside the home.
/// Guarantees: temporary files and extensions have their place in the home and nowhere else; what fits is answered, what
/// does not is an error and the store goes on; nothing is installed or loaded.
#[test]
fn g8_08_the_engine_writes_in_its_folder_and_fetches_nothing() {
    let home = tempfile::tempdir().unwrap();
    let settings = Config { memory_bytes: 32 << 20, temp_bytes: 256 << 20, ..config() };
    runtime().block_on(async {
        let (store, _) = Store::open(home.path(), &settings, Deletions::default()).unwrap();
        let folder = home.path().join("duckdb");
        for (name, wanted) in [
            ("temp_directory", folder.join("temp").display().to_string()),
            ("extension_directory", folder.join("extensions").display().to_string()),
            ("autoload_known_extensions", "false".to_owned()),
            ("allow_community_extensions", "false".to_owned()),
            ("allow_persistent_secrets", "false".to_owned()),
            ("enable_external_access", "false".to_owned()),
            ("lock_configuration", "true".to_owned()),
        ] {
            let found = ask(&store, &format!("SELECT CAST(current_setting('{name}') AS VARCHAR) = '{wanted}'")).await;
            assert_eq!(found.unwrap(), ["Boolean(true)"], "{name} is {wanted}");
        }
        let sorted = |rows: u64| format!("SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY hash(range) DESC, range::VARCHAR) AS n FROM range({rows}))");
        assert_eq!(ask(&store, &sorted(400_000)).await.unwrap(), ["BigInt(400000)"], "it is spilled");
        let beyond = ask(&store, &sorted(60_000_000)).await;
        assert!(matches!(beyond, Err(Error::NoMemory(_) | Error::Deadline(_) | Error::Engine(_))), "{beyond:?}");
        let json = "SELECT json_extract_string('{\"a\": {\"b\": 7}}', '$.a.b') = '7'";
        assert_eq!(ask(&store, json).await.unwrap(), ["Boolean(true)"]);
        for sql in ["SELECT * FROM read_parquet('x.parquet')", "SELECT * FROM 'https://example.org/x.csv'"] {
            assert!(ask(&store, sql).await.is_err(), "{sql}");
        }
        store.send_async(packed(rows(1, 1, 3))).await.unwrap();
        store.flush().await.unwrap();
        assert_eq!(count(&store, "spans").await, 3, "the store goes on");
        let names: Vec<String> = std::fs::read_dir(home.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.starts_with("iris.duckdb") && name != "duckdb")
            .collect();
        assert!(names.is_empty(), "{names:?}");
        assert_eq!(std::fs::read_dir(folder.join("extensions")).unwrap().count(), 0);
    });
}

/// Scenario: a reader is in the middle of its transaction when a checkpoint is asked for.
/// Guarantees: neither disturbs the other.
#[test]
fn a_checkpoint_and_a_reader_do_not_disturb_each_other() {
    let home = tempfile::tempdir().unwrap();
    runtime().block_on(async {
        let (store, _) = open(home.path());
        store.send_async(packed(rows(1, 1, 50))).await.unwrap();
        store.flush().await.unwrap();
        let (inside, entered) = std::sync::mpsc::channel();
        let (leave, left) = std::sync::mpsc::channel::<()>();
        let readers = std::sync::Arc::clone(&store.inner.readers);
        let reading = tokio::spawn(async move {
            let read = |row: &duckdb::Row<'_>| row.get::<_, u64>(0).map_err(Error::engine);
            let work = move |reader: &crate::store::reader::Reader<'_>| {
                let before = reader.rows("SELECT count(*) FROM spans", &[], read)?;
                inside.send(()).unwrap();
                left.recv().unwrap();
                Ok((before, reader.rows("SELECT count(*) FROM spans", &[], read)?))
            };
            readers.read(work).await
        });
        tokio::task::spawn_blocking(move || entered.recv()).await.unwrap().unwrap();
        store.send_async(packed(rows(2, 2, 5000))).await.unwrap();
        store.checkpoint().await.unwrap();
        leave.send(()).unwrap();
        assert_eq!(reading.await.unwrap().unwrap(), (vec![50], vec![50]));
        assert_eq!(count(&store, "spans").await, 5050);
    });
}

/// Not a test of its own: holds the lock for [`a_lock_names_its_holder`] until its input ends.
#[test]
#[ignore = "runs as a child of another test"]
fn hold_the_lock() {
    let Ok(home) = std::env::var("IRIS_TEST_LOCK_HOME") else { return };
    let (_store, _) = open(std::path::Path::new(&home));
    let mut out = std::io::stdout();
    writeln!(out, "\nheld").unwrap();
    out.flush().unwrap();
    let _ = std::io::stdin().read_line(&mut String::new());
}

/// Scenario: another process has the file open.
/// Guarantees: the error names that process.
#[test]
fn a_lock_names_its_holder() {
    let home = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "store::tests::safety::hold_the_lock", "--nocapture"])
        .env("IRIS_TEST_LOCK_HOME", home.path())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let held = output.any(|line| line.unwrap() == "held");
    let error = Store::open(home.path(), &config(), Deletions::default()).err();
    drop(child.stdin.take());
    output.for_each(drop);
    child.wait().unwrap();
    assert!(held);
    assert!(matches!(error, Some(Error::Locked { pid: Some(pid) }) if pid == child.id()), "{error:?}");
    let (_store, boot) = open(home.path());
    assert_eq!((boot.stored_through, boot.settled_through), Default::default());
    assert!(boot.stored.is_empty() && boot.reopen.is_empty() && boot.known.is_empty() && boot.damage.is_empty());
    assert_eq!(boot.horizon, Default::default());
    assert!(!boot.forgotten.may_contain(&key(1)));
}

/// Scenario: settings that cannot work.
/// Guarantees: they are refused by name before a file is made.
#[test]
fn impossible_settings_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let error = Store::open(home.path(), &Config { readers: 0, ..config() }, Deletions::default()).err().unwrap();
    assert_eq!(error.to_string(), "store.readers is 0; 1 to 16 is valid");
    assert!(std::fs::read_dir(home.path()).unwrap().next().is_none());
}
