package shop

trait Ops[F[_], A] extends Serializable {
  type TypeClassType <: Cons[F]
  def self: F[A]
  val instance: TypeClassType
}

class Rat(val n: Int) extends AnyVal {
  def +(that: Rat): Rat = {
    val sum = n + that.n
    Rat(sum)
  }
  def unary_- : Rat = Rat(-n)
  def ===[B](that: B)(implicit ev: Eq[B]): Boolean = ev.eqv(this, that)
  def /~(that: Rat): Int =
    n / that.n
}

object syntax {
  type ~>[F[_], G[_]] = Arrow[F, G]
  type Id[+A] = A
}
