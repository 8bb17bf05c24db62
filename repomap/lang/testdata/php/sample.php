<html><?= $x ?> function no() {}
<?php
declare(strict_types=1);
namespace App\Shop;
use Foo\{Bar, Baz};
use function strlen;
const LIMIT = 10;
#[Attribute]
abstract class Shop extends Base implements A, B {
    use SomeTrait;
    public const string MAX = 'x';
    private ?int $count = 0; // ?> <?php
    public function __construct(private readonly string $name, array $x = []) { }
    abstract protected function area(): float;
    public static function &make(int ...$n): ?self {
        $f = function ($x) use ($n) { return fn($y) => $y; };
        $o = new class { public function hidden() {} };
        $text = <<<EOT
        function no() { {$x['a']}
        EOT;
        return null;
    }
}
interface Sellable { public function sell(Item $i): void; }
trait Loud { function shout() { echo Shop::class; } }
enum Color: string { case Red = 'r'; public function label(): string { return "{"; } }
final readonly class Point {}
function helper(array $a, $b = "x}") { function inner() {} }
# function comment() {}
?>
<b>function html() {}</b>
