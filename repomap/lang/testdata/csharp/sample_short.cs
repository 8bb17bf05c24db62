namespace Shop;
public class Base;
class Derived : Base;
public sealed class Generic<T>(T value) : Base, IItem<T> where T : class;
interface IItem<T> : IBase;
struct Point : IItem<int>;
record Plain;
record Order(int Id) : Plain;
public readonly record struct Pair(int A, int B);
record struct Triple { public int Sum() => 1; }
class Last { void Run<T>() where T : class { } }
