# def not_this; end
require 'set'
LIMIT = 10
module Shop
  VERSION = "1.0#{x { "}" }}"
  Point = Struct.new(:x, :y) do
    def sum; x + y; end
  end
  class Basket < Base::Thing
    include Enumerable
    attr_accessor :name, :price
    def initialize(name, *rest, key: 1, &block)
      @name = name =~ /def no(/ ? 'a' : "b"
      text = <<~SQL
        def inside
        class No
      SQL
      %w[def class (x)].each { |w| puts w }
    end
    def self.create(attrs = {}) = new(attrs)
    def empty?; @items.empty? end
    def name=(value)
      @name = value
    end
    def [](i) @items[i] end
    private def hidden(a) a / 2 end
    class << self
      def build; end
    end
    class Error < StandardError; end
  end
end
=begin
def comment; end
=end
def main(argv)
  x = ?a
  def nested; end
end
class Shop::Late; def run!; end; end
def after_last_match
  $'
end

class ::Outside
  def <=>(other) = 0
  def self.[](key)
    key
  end
end

__END__
def no; end
