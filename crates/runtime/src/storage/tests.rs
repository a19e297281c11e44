//! What a place means, and which stores are refused.

use object_store::{ObjectStoreExt, PutMode, PutOptions, path::Path};

use super::*;

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn opened(place: &str) -> Location {
    Location::open(place, &StoreOptions::new()).unwrap()
}

fn refused(place: &str, options: &StoreOptions) -> Error {
    Location::open(place, options).expect_err(place)
}

#[tokio::test]
async fn t21_a_folder_is_one_by_its_path_and_by_its_url() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path().join("a lake");
    let by_path = opened(lake.to_str().unwrap());
    by_path.store.put(&Path::from("x"), "text".into()).await.unwrap();
    let url = by_path.url.clone().unwrap();
    assert!(url.starts_with("file:///") && url.ends_with("/a%20lake"), "{url}");
    let by_url = opened(&url);
    assert_eq!(by_url.folder, Some(lake));
    assert_eq!(by_url.store.get(&Path::from("x")).await.unwrap().bytes().await.unwrap(), "text");
    assert!(!by_url.is_empty().await.unwrap());
}

#[tokio::test]
async fn t21_memory_is_gone_with_its_store() {
    let first = opened("memory:///");
    first.store.put(&Path::from("x"), "text".into()).await.unwrap();
    assert!(opened("memory:///").is_empty().await.unwrap());
    assert!(first.folder.is_none() && first.url.is_none(), "nobody else can reach it");
}

#[test]
fn places_that_cannot_be_meant_are_refused_with_what_and_why() {
    let none = StoreOptions::new();
    for (place, parts, kind) in [
        ("ftp://host/x", ["ftp://host/x", "s3://"], ErrorKind::Unsupported),
        ("s3:///x", ["no bucket", "s3:///x"], ErrorKind::Definition),
        ("s3://key:secret@bucket/x", ["credentials", "s3://..@bucket/x"], ErrorKind::Definition),
        ("gs://key@bucket/x", ["credentials", "gs://..@bucket/x"], ErrorKind::Definition),
        ("s3://bucket/x?versionId=7", ["behind its path", "bucket"], ErrorKind::Definition),
        ("s3://bucket/a//b", ["path", "bucket"], ErrorKind::Definition),
        ("file://host/x", ["no folder of this machine", "file:///"], ErrorKind::Definition),
        ("s3://b u/x", ["no URL", "b u"], ErrorKind::Definition),
    ] {
        let error = refused(place, &none);
        let told = format!("{} {}", error.full_text(), error.help_text().unwrap_or_default());
        assert_eq!(error.kind(), kind, "{told}");
        assert!(parts.iter().all(|part| told.contains(part)), "{told}");
        assert!(!told.contains("secret"), "{told}");
    }
}

#[cfg(feature = "s3")]
mod s3 {
    use super::*;

    const KEYS: [(&str, &str); 2] =
        [("AWS_ACCESS_KEY_ID", "env-id"), ("AWS_SECRET_ACCESS_KEY", "env-secret")];

    fn shown(place: &str, options: &StoreOptions) -> String {
        format!("{:?}", Location::open(place, options).unwrap().store)
    }

    #[test]
    fn the_environment_says_how_a_store_is_reached_and_options_win() {
        let environment = StoreOptions::new().with_environment(pairs(&[
            ("AWS_REGION", "eu-central-1"),
            ("AWS_DEFAULT_REGION", "us-west-2"),
            ("AWS_PROFILE", "of no meaning to a store"),
            ("PATH", "/bin"),
        ]));
        let by_environment = shown("s3://bucket/some/prefix/", &environment);
        assert!(by_environment.contains("eu-central-1"), "{by_environment}");
        assert!(by_environment.contains("some/prefix"), "{by_environment}");
        let by_option = shown("s3a://bucket", &environment.with_options(pairs(&[("region", "eu-north-1")])));
        assert!(by_option.contains("eu-north-1") && !by_option.contains("eu-central-1"), "{by_option}");
    }

    #[test]
    fn keys_of_options_are_not_mixed_with_those_of_the_environment() {
        use object_store::aws::AmazonS3ConfigKey as Key;

        let known = options::Known {
            prefix: "AWS_",
            groups: &[&["aws_access_key_id", "aws_secret_access_key", "aws_session_token"]],
        };
        let options = StoreOptions::new()
            .with_environment(pairs(&KEYS))
            .with_environment(pairs(&[("AWS_SESSION_TOKEN", "env-token"), ("AWS_ENDPOINT_URL", "https://e")]))
            .with_options(pairs(&[("AWS_Access_Key_ID", "id"), ("secret_access_key", "secret")]));
        let merged = options.merged::<Key>(&known).unwrap();
        assert_eq!(
            merged,
            [
                (Key::Endpoint, "https://e".to_owned()),
                (Key::AccessKeyId, "id".to_owned()),
                (Key::SecretAccessKey, "secret".to_owned()),
            ]
        );
        let told = format!("{options:?}");
        assert!(told.contains("secret_access_key") && !told.contains("env-secret"), "{told}");
    }

    #[test]
    fn options_that_cannot_be_meant_are_refused_before_anything_is_asked_of_the_store() {
        let with = |options: &[(&str, &str)]| StoreOptions::new().with_options(pairs(options));
        for (options, part) in [
            (with(&[("aws_regoin", "x")]), "aws_regoin"),
            (with(&[("aws_endpoint_url", "http://127.0.0.1:9")]), "AWS_ALLOW_HTTP"),
            (with(&[("aws_allow_http", "perhaps")]), "perhaps"),
        ] {
            let error = refused("s3://bucket/x", &options);
            let told = format!("{} {}", error.full_text(), error.help_text().unwrap_or_default());
            assert_eq!(error.kind(), ErrorKind::Definition, "{told}");
            assert!(told.contains(part) && told.contains("s3://bucket/x"), "{told}");
        }
        let allowed = with(&[("aws_endpoint_url", "http://127.0.0.1:9"), ("aws_allow_http", "true")]);
        assert!(Location::open("s3://bucket/x", &allowed).is_ok());
    }

    #[tokio::test]
    async fn a_store_that_does_not_answer_is_an_error_that_says_what_to_check() {
        let options = StoreOptions::new().with_environment(pairs(&KEYS)).with_options(pairs(&[
            ("aws_endpoint_url", "http://127.0.0.1:9"),
            ("aws_allow_http", "true"),
            ("aws_timeout", "1 second"),
        ]));
        let location = Location::open("s3://bucket/x", &options).unwrap();
        let error = location.is_empty().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("s3://bucket/x"), "{error}");
        assert!(error.help_text().unwrap().contains("--storage-option"));
    }
}

#[cfg(feature = "azure")]
#[test]
fn azure_has_its_two_spellings() {
    let options = StoreOptions::new().with_environment(pairs(&[
        ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
        ("AZURE_STORAGE_ACCOUNT_KEY", "a2V5"),
    ]));
    for place in ["az://container/p", "abfss://container@account.dfs.core.windows.net/p"] {
        let location = Location::open(place, &options).unwrap();
        assert_eq!(location.url.as_deref(), Some(place));
        assert!(format!("{:?}", location.store).contains("container"), "{:?}", location.store);
    }
    let error = refused("az://container/p", &StoreOptions::new());
    assert_eq!(error.kind(), ErrorKind::Definition, "no account is given: {error}");
}

#[cfg(feature = "gcs")]
#[test]
fn google_is_found_by_its_own_variables() {
    let key = r#"{"private_key": "", "private_key_id": "", "client_email": "", "disable_oauth": true}"#;
    let options = StoreOptions::new().with_environment(pairs(&[("GOOGLE_SERVICE_ACCOUNT_KEY", key)]));
    let location = Location::open("gs://bucket/p/q", &options).unwrap();
    assert!(format!("{:?}", location.store).contains("bucket"));
    assert_eq!(location.url.as_deref(), Some("gs://bucket/p/q"));
}

#[cfg(not(feature = "s3"))]
#[test]
fn a_feature_that_is_off_is_named() {
    let error = refused("s3://bucket/x", &StoreOptions::new());
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("`s3`"), "{error}");
}

/// Stores as some servers are: create-only puts are passed over, or not there.
#[derive(Debug)]
struct Careless {
    inner: InMemory,
    refuses: bool,
}

impl fmt::Display for Careless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Careless")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Careless {
    async fn put_opts(
        &self,
        location: &Path,
        payload: object_store::PutPayload,
        opts: PutOptions,
    ) -> object_store::Result<object_store::PutResult> {
        if self.refuses && matches!(opts.mode, PutMode::Create) {
            let operation = "put_opts".to_owned();
            return Err(object_store::Error::NotImplemented { operation, implementer: self.to_string() });
        }
        self.inner.put_opts(location, payload, PutOptions { mode: PutMode::Overwrite, ..opts }).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: object_store::PutMultipartOptions,
    ) -> object_store::Result<Box<dyn object_store::MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(
        &self,
        location: &Path,
        options: object_store::GetOptions,
    ) -> object_store::Result<object_store::GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: futures::stream::BoxStream<'static, object_store::Result<Path>>,
    ) -> futures::stream::BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(
        &self,
        prefix: Option<&Path>,
    ) -> futures::stream::BoxStream<'static, object_store::Result<object_store::ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(
        &self,
        prefix: Option<&Path>,
    ) -> object_store::Result<object_store::ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &Path,
        to: &Path,
        options: object_store::CopyOptions,
    ) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[tokio::test]
async fn t21_a_store_that_creates_an_object_twice_is_refused_and_left_as_it_was() {
    for refuses in [false, true] {
        let store: Arc<dyn ObjectStore> = Arc::new(Careless { inner: InMemory::new(), refuses });
        let format = Arc::new(strandline_table_formats::MemoryFormat::new());
        let location = Location { store: Arc::clone(&store), folder: None, url: Some("s3://b/p".to_owned()) };
        let storage = location.with_format(format);
        let error = storage.check_guarantees().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("s3://b/p"), "{error}");
        assert!(error.help_text().unwrap().contains("If-None-Match"));
        let left = store.list_with_delimiter(None).await.unwrap();
        assert!(left.objects.is_empty() && left.common_prefixes.is_empty(), "{left:?}");
    }
}

#[tokio::test]
async fn t21_a_good_store_is_asked_once_a_run() {
    let store = strandline_testkit::fault::FaultStore::new(InMemory::new());
    let faults = store.faults();
    let store: Arc<dyn ObjectStore> = Arc::new(store);
    for expected in [2, 1, 1] {
        probe::create_only(&store, None).await.unwrap();
        assert_eq!(faults.take_trace().len(), expected);
    }
}
