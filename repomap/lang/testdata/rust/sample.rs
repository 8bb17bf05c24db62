//! Docs: fn not_this() {}
use std::fmt::{self, Display};
pub const LIMIT: usize = 10;
static mut COUNTER: u32 = 0;
#[derive(Debug)]
pub struct Shop<'a, T: Item + 'a> where T: Clone { pub items: Vec<&'a T> }
struct Unit;
struct Pair(i32, i32);
pub(crate) enum Color { Red, Green(u8) }
pub trait Sell: Display { type Price; const MAX: u8 = 1; fn sell(&self) -> Self::Price; fn twice(&self) { let fn_x = 1; } }
impl<'a, T> Sell for Shop<'a, T> where T: Item {
    type Price = u32;
    fn sell(&self) -> u32 { fn local() {} let c = '{'; let s = r#"fn no() { "x" "#; 1 }
}
impl<T> Shop<'_, T> {
    pub async fn new<F>(f: F) -> Result<Self, Box<dyn Error>> where F: Fn(&str) -> bool { todo!() }
    pub const fn size() -> usize { 3 }
    unsafe extern "C" fn raw(x: *const u8) {}
}
pub mod inner { pub fn deep() -> impl Fn(i32) -> i32 { |x| x } }
mod outside;
macro_rules! vector { ($($x:expr),*) => { fn generated() {} }; }
type Handler = fn(i32) -> i32;
union Both { a: u32, b: f32 }
fn main() { let x = 'a: loop { break 'a; }; struct Local; }
/* nested /* fn a() {} */ fn b() {} */
fn last(x: [u8; 4]) -> (u8, u8) { (1, 2) }

impl Sell for [u8; 4] {
    fn sell(&self) -> u32 { 1 }
}
