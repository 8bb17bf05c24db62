// Members that are only an expression, and members of interfaces.
namespace Shop;

public class Paths : IPaths, IEquatable<Paths>
{
    public string Name => _localization.GetString("TaskName");

    public DbSet<Item> Items => Set<Item>();

    public string Key => nameof(Paths);

    public ReadOnlySpan<char> Stem => !IsFolder
        ? Strip(Path.AsSpan())
        : Path.AsSpan();

    bool IPaths.Supports(Type type)
        => typeof(Item).IsAssignableFrom(type) || typeof(Paths).IsAssignableFrom(type);

    Task<IReadOnlyList<Item>> IPaths.FindAsync(Item item) => item switch
    {
        Folder f => Load(f),
        _ => Empty(),
    };

    private static bool Refresh(Item item)
        => item is Folder { IsRoot: false }
            and not (Link or View);

    public int After { get; set; }
}
