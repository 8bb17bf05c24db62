extern "C" {
    pub fn open(path: *const u8) -> i32;
    pub static ERRNO: i32;
    type Opaque;
}
unsafe extern "system" { pub safe fn now() -> u64; }
extern { fn bare(); }
pub mod r#async { pub fn inside() {} }
fn r#match<'a>(x: &'a str) -> r#type { r"raw" ; r#"raw "quoted""# }
struct r#type;
trait Tr { fn r#fn(&self); }
pub extern "C" fn exported() {}
pub unsafe extern "C" fn both() {}
pub macro twice($x:expr) { $x + $x }
fn last() {}
