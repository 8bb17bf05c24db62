package shop
import a.b._
sealed trait Shape { def area: Double; val name: String = "x" }
case class Circle(r: Double) extends Shape with Other {
  override def area: Double = { val local = 3; math.Pi * r }
  private[shop] lazy val cached = compute { val hidden = 1 }
  type Id = String
}
object Shop extends App {
  def apply[T](x: T)(implicit ev: Ordering[T]): Shop[T] = new Shop(x) { def inner = 1 }
  implicit class Rich(val s: String) { def shout = s.toUpperCase }
  val text = s"def no = ${f("x}")} {"
  val (a, b) = pair
  def longer(x: Int) =
    val hidden = 1
    def inner = 2
    hidden
  def after(c: Char = '{'): Unit = ()
}
abstract class Base[+T <: AnyRef](protected val x: Int):
  def indented(y: Int): Int =
    y + 1
  def second = 2
enum Color:
  case Red, Green
  def code = 1
package object util { def helper() = 1 }
given ord: Ordering[Int] with
  def compare(x: Int, y: Int) = 0

class Wide[T]
          (x: T,
           y: Int) {
  def `type` = x
}
