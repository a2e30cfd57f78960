//! Descriptions of services.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use prost::Message;
use prost_reflect::{DescriptorPool, FileDescriptor};
use protox::Compiler;
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
use weir_base::nearest::nearest;

use super::file_set::FileSet;
use super::method::GrpcMethod;

/// Services and their messages.
#[derive(Clone, Debug)]
pub struct GrpcSchema {
    pool: DescriptorPool,
}

/// Name of a method, from the path of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodName {
    /// Full name of its service: `package.Service`.
    pub service: String,
    /// Name within the service.
    pub method: String,
}

/// Maximum number of names in a message.
const MAX_NAMES: usize = 20;

/// Text of a file of a `.proto` description; `None` if no folder has it.
pub type SourceReader<'a> = dyn FnMut(&str) -> Result<Option<String>, String> + 'a;

/// Sources that were read before the compiler asks for them, and the first one that is missing.
#[derive(Debug, Default)]
struct ReadSources {
    texts: Vec<(String, String)>,
    missing: Rc<RefCell<Option<String>>>,
}

impl FileResolver for ReadSources {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match self.texts.iter().find(|(known, _)| known == name) {
            Some((_, text)) => File::from_source(name, text),
            None => {
                self.missing.borrow_mut().get_or_insert_with(|| name.to_owned());
                Err(protox::Error::file_not_found(name))
            }
        }
    }
}

impl MethodName {
    /// Method of the path of a URL: `/package.Service/Method`.
    ///
    /// # Errors
    /// One line: what the path lacks.
    pub fn parse(path: &str) -> Result<Self, String> {
        let rest = path.strip_prefix('/').unwrap_or(path);
        let mut parts = rest.split('/');
        match (parts.next(), parts.next(), parts.next()) {
            _ if rest.contains('?') => Err(format!(
                "invalid path '{}' of a gRPC URL: calls have no query; write values into the message, -b, or metadata, -H",
                path.escape_debug()
            )),
            (Some(service), Some(method), None) if !service.is_empty() && !method.is_empty() => {
                Ok(Self { service: service.to_owned(), method: method.to_owned() })
            }
            // As in grpcurl's `describe` and in ghz.
            (Some(name), None, None) if name.matches('.').count() > 1 => {
                let (service, method) = name.rsplit_once('.').unwrap_or((name, ""));
                let (service, method) = (service.escape_debug(), method.escape_debug());
                Err(format!("invalid path '{}' of a gRPC URL; write /{service}/{method}", path.escape_debug()))
            }
            _ => Err(format!(
                "invalid path '{}' of a gRPC URL; write grpc://host:port/package.Service/Method",
                path.escape_debug()
            )),
        }
    }
}

impl GrpcSchema {
    pub(super) fn new(pool: DescriptorPool) -> Self {
        Self { pool }
    }

    /// Schema of a descriptor set, as `protoc --descriptor_set_out --include_imports` writes it.
    ///
    /// # Errors
    /// One line: why it is none.
    pub fn from_descriptor_set(bytes: &[u8]) -> Result<Self, String> {
        let set = FileSet::decode(bytes).map_err(|error| error.to_string()).and_then(|set| set.pool());
        set.map(Self::new).map_err(|why| {
            format!("not a descriptor set with all imports: {why}; write it by protoc --include_imports -o FILE")
        })
    }

    /// Schema of `.proto` files; `read` has their texts and those of their imports, by name.
    ///
    /// # Errors
    /// One line: the mistake, with its file, line and column, or the file that is missing.
    pub fn compile(files: &[String], read: &mut SourceReader<'_>) -> Result<Self, String> {
        let mut texts: Vec<(String, String)> = Vec::new();
        for file in files {
            let text = read(file)?.ok_or_else(|| format!("no file '{}'", file.escape_debug()))?;
            texts.push((file.clone(), without_mark(text)));
        }
        // Each attempt shows one import that is still missing.
        loop {
            let missing = Rc::new(RefCell::new(None));
            let mut resolver = ChainFileResolver::new();
            resolver.add(ReadSources { texts: texts.clone(), missing: Rc::clone(&missing) });
            resolver.add(GoogleFileResolver::new());
            let mut compiler = Compiler::with_file_resolver(resolver);
            compiler.include_imports(true);
            // As for sets: no text may end the process.
            let compiled = catch_unwind(AssertUnwindSafe(|| {
                compiler.open_files(files).map(|compiler| compiler.descriptor_pool())
            }));
            let error = match compiled {
                Ok(Ok(pool)) => return Ok(Self { pool }),
                Ok(Err(error)) => error,
                Err(_) => return Err("the files cannot be compiled; give --protoset".to_owned()),
            };
            let name = missing.borrow_mut().take();
            match name.map(|name| read(&name).map(|text| (name, text))).transpose()? {
                Some((name, Some(text))) => texts.push((name, without_mark(text))),
                _ => return Err(mistake(&error)),
            }
        }
    }

    /// The schema as a descriptor set.
    pub fn to_descriptor_set(&self) -> Vec<u8> {
        self.pool.encode_to_vec()
    }

    /// Full names of the services.
    pub fn services(&self) -> Vec<String> {
        self.pool.services().map(|service| service.full_name().to_owned()).collect()
    }

    /// Description of a file and of its imports, as bytes each; `None` if there is no file of this name.
    pub fn file(&self, name: &str) -> Option<Vec<Vec<u8>>> {
        let mut files = vec![self.pool.get_file_by_name(name)?];
        let mut next = 0;
        while let Some(file) = files.get(next).cloned() {
            next += 1;
            for import in file.dependencies() {
                if files.iter().all(|known| known.name() != import.name()) {
                    files.push(import);
                }
            }
        }
        Some(files.iter().map(FileDescriptor::encode_to_vec).collect())
    }

    /// Name of the file that has a service, a method or a type of this full name.
    pub fn file_of(&self, symbol: &str) -> Option<String> {
        let service = |name: &str| self.pool.get_service_by_name(name);
        let of_method = || {
            let (name, method) = symbol.rsplit_once('.')?;
            service(name).filter(|service| service.methods().any(|it| it.name() == method))
        };
        let file = service(symbol).or_else(of_method).map(|service| service.parent_file());
        let file = file.or_else(|| self.pool.get_message_by_name(symbol).map(|message| message.parent_file()));
        let file = file.or_else(|| self.pool.get_enum_by_name(symbol).map(|one| one.parent_file()));
        file.map(|file| file.name().to_owned())
    }

    /// Method of a name.
    ///
    /// # Errors
    /// One line: what is unknown, the name that was probably meant, and those that are there.
    pub fn method(&self, name: &MethodName) -> Result<GrpcMethod, String> {
        let Some(service) = self.pool.get_service_by_name(&name.service) else {
            return Err(unknown_service(&name.service, &self.services()));
        };
        let found = service.methods().find(|method| method.name() == name.method);
        found.map(GrpcMethod::new).ok_or_else(|| {
            let names: Vec<String> = service.methods().map(|method| method.name().to_owned()).collect();
            let has = format!("{} has", name.service);
            unknown("method", &name.method, &has, &names)
        })
    }
}

/// `unknown service 'shop.Carts'; did you mean 'shop.Cart'? there are shop.Cart, shop.Users`.
pub(super) fn unknown_service(name: &str, services: &[String]) -> String {
    unknown("service", name, "there are", services)
}

fn unknown(noun: &str, name: &str, has: &str, names: &[String]) -> String {
    let mut text = format!("unknown {noun} '{}'; ", name.escape_debug());
    // A service without its package is far from its full name.
    let by_end = || names.iter().map(String::as_str).find(|known| known.rsplit('.').next() == Some(name));
    if let Some(near) = nearest(name, names.iter().map(String::as_str)).or_else(by_end) {
        text.push_str(&format!("did you mean '{near}'? "));
    }
    let shown: Vec<&str> = names.iter().map(String::as_str).take(MAX_NAMES).collect();
    let more = names.len().saturating_sub(MAX_NAMES);
    match (shown.is_empty(), more) {
        (true, _) => text.push_str(&format!("{has} none")),
        (false, 0) => text.push_str(&format!("{has} {}", shown.join(", "))),
        (false, _) => text.push_str(&format!("{has} {} and {more} more", shown.join(", "))),
    }
    text
}

/// Mistake of a source with its position: `shop.proto:3:7: ...`.
fn mistake(error: &protox::Error) -> String {
    let text = one_line(&format!("{error:?}"));
    let text = match text.strip_suffix("but found 'edition'") {
        Some(_) => "it has an edition of protobuf; proto2 and proto3 are read".to_owned(),
        None => text,
    };
    match error.file() {
        Some(file) if !text.starts_with(file) => format!("{file}: {text}"),
        _ => text,
    }
}

/// Text of a file without a byte order mark, as the compiler of protobuf takes it.
fn without_mark(text: String) -> String {
    text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)
}

/// Text of a library in one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
