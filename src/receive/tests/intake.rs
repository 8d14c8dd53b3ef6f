use std::io::Write;
use std::time::Duration;

use super::*;
use crate::ingest::Admission;
use http_body_util::{Full, StreamBody};
use hyper::body::Frame;
use tonic::Code;

const KIB: usize = 1024;
const ROOMY: u64 = 1 << 50;

fn admission(bytes: usize) -> Admission {
    Admission::with_bytes(bytes as u64, ROOMY)
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

fn chunks(chunks: Vec<Bytes>) -> impl Body<Data = Bytes, Error = std::convert::Infallible> + Unpin {
    StreamBody::new(futures_util::stream::iter(chunks.into_iter().map(|chunk| Ok(Frame::data(chunk)))))
}

fn framed(flag: u8, announced: usize, message: &[u8]) -> Vec<u8> {
    let mut framed = vec![flag];
    framed.extend(u32::try_from(announced).unwrap().to_be_bytes());
    framed.extend_from_slice(message);
    framed
}

fn gzip(bytes: &[u8]) -> Bytes {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap().into()
}

fn deflate(bytes: &[u8]) -> Bytes {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap().into()
}

fn zstd(bytes: &[u8]) -> Bytes {
    zstd::encode_all(bytes, 3).unwrap().into()
}

#[tokio::test]
async fn a_body_is_gathered_under_permits() {
    let admission = admission(1024 * KIB);
    let mut permit = admission.enter().unwrap();
    let pieces: Vec<Bytes> = (0..100u8).map(|n| Bytes::from(vec![n; KIB])).collect();
    let body = read_body(&mut chunks(pieces), 100 * KIB, soon(), &mut permit).await.unwrap();
    assert_eq!(body.len(), 100 * KIB);
    assert!(body.chunks(KIB).zip(0..).all(|(piece, n)| piece.iter().all(|byte| *byte == n)));
    assert!(admission.bytes_free() <= 924 * KIB as u64);
    drop(permit);
    assert_eq!(admission.bytes_free(), 1024 * KIB as u64);
}

#[tokio::test]
async fn a_body_may_be_as_large_as_allowed_and_not_a_byte_larger() {
    for declared in [true, false] {
        for (bytes, is_allowed) in [(100 * KIB, true), (100 * KIB + 1, false)] {
            let admission = admission(1024 * KIB);
            let mut permit = admission.enter().unwrap();
            let whole = Bytes::from(vec![7; bytes]);
            let result = if declared {
                read_body(&mut Full::new(whole), 100 * KIB, soon(), &mut permit).await
            } else {
                read_body(&mut chunks(vec![whole.slice(..KIB), whole.slice(KIB..)]), 100 * KIB, soon(), &mut permit)
                    .await
            };
            match result {
                Ok(body) => assert!(is_allowed && body.len() == bytes),
                Err(fault) => assert!(!is_allowed && fault == Fault::too_large(100 * KIB as u64), "{fault:?}"),
            }
        }
    }
}

#[tokio::test]
async fn no_permit_no_byte() {
    let admission = admission(64 * KIB);
    let mut other = admission.enter().unwrap();
    other.hold(40 * KIB).unwrap();
    let mut permit = admission.enter().unwrap();
    let body = vec![Bytes::from(vec![1; 20 * KIB]), Bytes::from(vec![2; 20 * KIB])];
    let fault = read_body(&mut chunks(body), 60 * KIB, soon(), &mut permit).await.unwrap_err();
    assert_eq!(fault, Fault::busy());
    drop(permit);
    assert_eq!(admission.bytes_free(), 24 * KIB as u64, "everything given back");
}

#[tokio::test]
async fn a_body_that_trickles_in_times_out_whatever_it_sends() {
    let admission = admission(64 * KIB);
    let mut permit = admission.enter().unwrap();
    let deadline = Instant::now() + Duration::from_millis(100);
    let trickle = futures_util::stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Some((Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from_static(b"x"))), ()))
    });
    let mut body = StreamBody::new(Box::pin(trickle));
    let fault = read_body(&mut body, KIB, deadline, &mut permit).await.unwrap_err();
    assert_eq!((fault.code, fault.http.as_u16()), (Code::DeadlineExceeded, 408));
    assert!(Instant::now() >= deadline);
}

#[tokio::test]
async fn a_message_is_found_wherever_the_frames_are_cut() {
    let message: Vec<u8> = (0..=255).collect();
    let framed = framed(1, message.len(), &message);
    for cut in 0..=framed.len() {
        let admission = admission(64 * KIB);
        let mut permit = admission.enter().unwrap();
        let (head, tail) = framed.split_at(cut);
        let pieces = vec![Bytes::copy_from_slice(head), Bytes::copy_from_slice(tail)];
        let (read, is_compressed) = read_message(&mut chunks(pieces), KIB, soon(), &mut permit).await.unwrap();
        assert_eq!((&read[..], is_compressed), (&message[..], true), "cut at {cut}");
    }
}

#[tokio::test]
async fn what_is_not_one_message_is_refused() {
    let empty = [framed(0, 0, b""), framed(0, 0, b"")].concat();
    for (bytes, words) in [
        (Vec::new(), "no message"),
        (vec![0, 0], "no message"),
        (framed(0, 3, b"ab"), "has 2 of the 3"),
        (framed(0, 3, b"abcd"), "exactly one"),
        (empty, "exactly one"),
        (framed(2, 1, b"a"), "flag"),
    ] {
        let admission = admission(64 * KIB);
        let mut permit = admission.enter().unwrap();
        let fault = read_message(&mut chunks(vec![bytes.into()]), KIB, soon(), &mut permit).await.unwrap_err();
        assert_eq!(fault.code, Code::InvalidArgument, "{words}");
        assert!(fault.message.contains(words), "{}", fault.message);
    }
    let admission = admission(64 * KIB);
    let mut permit = admission.enter().unwrap();
    let huge = framed(0, u32::MAX as usize, b"a").into();
    let fault = read_message(&mut chunks(vec![huge]), KIB, soon(), &mut permit).await.unwrap_err();
    assert_eq!(fault, Fault::too_large(KIB as u64), "the announced length is enough");
    assert_eq!(admission.bytes_free(), 64 * KIB as u64);
}

#[tokio::test]
async fn every_compression_is_undone_up_to_the_limit_exactly() {
    let message: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
    for (compression, compressed) in [
        (Compression::Gzip, gzip(&message)),
        (Compression::Zstd, zstd(&message)),
        (Compression::Deflate, deflate(&message)),
    ] {
        for (bytes_max, is_allowed) in [(message.len(), true), (message.len() + 1, true), (message.len() - 1, false)] {
            let admission = admission(4096 * KIB);
            let mut permit = admission.enter().unwrap();
            permit.hold(compressed.len()).unwrap();
            match inflate(compression, compressed.clone(), bytes_max, permit).await {
                Ok((read, permit)) => {
                    assert!(is_allowed && read == message, "{compression:?}");
                    let held = admission.bytes_max() - admission.bytes_free();
                    assert!(held >= message.len() as u64 && held <= 2 * message.len() as u64, "{held}");
                    drop(permit);
                }
                Err(fault) => assert!(!is_allowed && fault == Fault::too_large(bytes_max as u64), "{fault:?}"),
            }
            assert_eq!(admission.bytes_free(), admission.bytes_max());
        }
    }
}

#[tokio::test]
async fn members_and_frames_add_up() {
    let twice = |one: Bytes| Bytes::from([one.clone(), one].concat());
    for (compression, compressed) in
        [(Compression::Gzip, twice(gzip(b"span"))), (Compression::Zstd, twice(zstd(b"span")))]
    {
        let permit = admission(64 * KIB).enter().unwrap();
        let (read, _) = inflate(compression, compressed, KIB, permit).await.unwrap();
        assert_eq!(read, &b"spanspan"[..], "{compression:?}");
    }
}

#[tokio::test]
async fn bad_compression_is_named_and_never_a_server_error() {
    let message = vec![42; 10 * KIB];
    for (compression, whole) in [
        (Compression::Gzip, gzip(&message)),
        (Compression::Zstd, zstd(&message)),
        (Compression::Deflate, deflate(&message)),
    ] {
        let mut flipped = whole.to_vec();
        let last = flipped.len() - 6;
        flipped[last] ^= 0xff;
        let half = whole.slice(..whole.len() / 2);
        let trailing = Bytes::from([&whole[..], b"not compressed"].concat());
        let mut bad = vec![Bytes::new(), Bytes::from_static(b"plain text, nothing compressed"), half];
        if compression == Compression::Gzip {
            bad.extend([flipped.into(), trailing]);
        }
        for (n, compressed) in bad.into_iter().enumerate() {
            let admission = admission(64 * KIB);
            let permit = admission.enter().unwrap();
            let fault = inflate(compression, compressed, 20 * KIB, permit).await.unwrap_err();
            assert_eq!((fault.code, fault.http.as_u16()), (Code::InvalidArgument, 400), "{compression:?} {n}");
            assert_eq!(admission.bytes_free(), admission.bytes_max());
        }
    }
}

#[tokio::test]
async fn a_bomb_is_defused_at_the_limit_without_ever_holding_more_than_that() {
    let zeros = vec![0; 8 * 1024 * KIB];
    for (compression, bomb) in [(Compression::Gzip, gzip(&zeros)), (Compression::Zstd, zstd(&zeros))] {
        let admission = admission(1024 * KIB);
        let permit = admission.enter().unwrap();
        let fault = inflate(compression, bomb, 256 * KIB, permit).await.unwrap_err();
        assert_eq!(fault, Fault::too_large(256 * KIB as u64), "{compression:?}");
        assert_eq!(admission.bytes_free(), admission.bytes_max());
    }
}

#[tokio::test]
async fn a_zstd_frame_that_wants_a_huge_window_is_refused() {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    encoder.write_all(&vec![1; 64 * KIB]).unwrap();
    let permit = admission(1024 * KIB).enter().unwrap();
    let compressed = encoder.finish().unwrap().into();
    let fault = inflate(Compression::Zstd, compressed, 512 * KIB, permit).await.unwrap_err();
    assert_eq!(fault.code, Code::InvalidArgument);
}
