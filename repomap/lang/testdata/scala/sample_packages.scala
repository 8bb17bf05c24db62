package shop.basket
package object util { def help(x: Int) = x }
package inner { class Deep }
package a.b {
  class Deeper
}
class Item(a: Int) {
  def this() = this(1)
  private def this(s: String) = { this(1) }
  def last = this.a
}
