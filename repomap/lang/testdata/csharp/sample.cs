using System;
using X = System.Text;
#region R
namespace Shop.Core;
[Serializable]
public partial class Basket<T> : Base, IFoo where T : class, new()
{
    private readonly List<T> items = new() { };
    public const int Limit = 10;
    public int Count { get; private set; } = 0;
    public string Name => $"{items["a"]} }} {{";
    public event EventHandler Changed;
    public Basket(string name) : base(name) { }
    public async Task<int> SellAsync<K>(K item, int n = 1) where K : T
    {
        void Local() { }
        var s = @"c:\"; var t = $@"a ""{x}"" b";
        return await Foo();
    }
    public override string ToString() => "x{";
    public static Basket<T> operator +(Basket<T> a, Basket<T> b) { return a; }
    [Obsolete("x")] void IFoo.Explicit() { }
    public delegate void Handler(object sender);
    enum Inner { A, B }
    interface INested { void Run(int x); int Id { get; } }
}
public record Point(int X, int Y);
public record struct Pair<A>(A First) { public A Get() => First; }
public struct S { public int F; }
internal static class Program { static void Main(string[] args) { } }
public class Primary(int x) : Base(x) { }
var raw = """
  class No { }
  """;

public class Verbatim
{
    string four = @"""" + x + @"{""";
    public void After() { }
}
