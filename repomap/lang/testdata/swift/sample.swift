import UIKit
@objc public final class Shop<T: Item>: Base, Sellable where T: Codable {
    static let shared = Shop()
    private(set) var count: Int = 0 { didSet { let hidden = 1 } }
    var total: Int { return 1 }
    public init?(name: String, _ x: Int = 3) { super.init() }
    deinit { }
    @discardableResult
    override func sell<K>(_ item: K, with block: @escaping (K) -> Void) async throws -> [K] {
        func local() {}
        let text = "a \(items["x"]!) func no() {"
        return []
    }
    class func make() -> Shop { Shop() }
    subscript(i: Int) -> T { get { x } }
    enum Kind: String { case a, b(Int)
        func describe() -> String { "" } }
}
protocol Sellable: AnyObject { func sell(); var price: Int { get }; associatedtype Item }
extension Shop.Kind: Equatable { func equal() -> Bool { true } }
struct Point { let x, y: Int; mutating func move() {} }
typealias Handler = (Int) -> Void
func +(a: Point, b: Point) -> Point { a }
func main() { if let x = y { } }
actor Bank { func pay() async {} }
let raw = #"func no() { "quoted" "#

import func Other.imported
let `default` = 1
