class Controller
  def show
    render
  end

  protected

    def path_for(name)
      name
    end

    def scope
      :x
    end

  private
  def hidden
  end
end
