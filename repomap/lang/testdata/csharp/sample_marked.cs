namespace Shop.Marked
{
    public class Marked : IList<Item>
    {
        IEnumerator<Item> IEnumerable<Item>.GetEnumerator() => null;
    }
}
